# generated/version.h: what --version prints. The commit is looked up at configure time.
execute_process(
  COMMAND git -C ${PROJECT_SOURCE_DIR} describe --always --dirty --abbrev=10
  OUTPUT_VARIABLE DCSIM_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT DCSIM_COMMIT)
  set(DCSIM_COMMIT "unknown")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/version.h.in ${PROJECT_BINARY_DIR}/generated/dcsim_version.h)
