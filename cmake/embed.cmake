# dcsim_embed(TARGET NAME FILE): the text of FILE in TARGET, what `std::string_view NAME()` gives, of
# namespace dcsim. The text holds no `)dcsim"`.
function(dcsim_embed target name file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} DCSIM_TEXT)
  set(DCSIM_NAME ${name})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/embedded.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp @ONLY)
  target_sources(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  # The standard asks compilers for 65,536 characters; gcc and clang take any number.
  set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp PROPERTIES COMPILE_OPTIONS
                              -Wno-overlength-strings)
endfunction()
