# What every target of the project is compiled with.
add_library(dcsim_options INTERFACE)
target_include_directories(dcsim_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
target_compile_options(dcsim_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow)
# GCC 12 sees overlapping copies where -O3 inlines "text" + std::to_string(n): its bug 105651.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(dcsim_options INTERFACE -Wno-restrict)
endif()
# Code of a shared library that calls itself directly, as a program's does. Programs have the same
# options: they reuse precompiled headers.
if(DCSIM_PYTHON_MODULE)
  target_compile_options(dcsim_options INTERFACE -fPIC -fno-semantic-interposition)
endif()
if(DCSIM_WERROR)
  target_compile_options(dcsim_options INTERFACE -Werror)
endif()
if(DCSIM_SANITIZE)
  target_compile_options(dcsim_options INTERFACE
    -fsanitize=${DCSIM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(dcsim_options INTERFACE -fsanitize=${DCSIM_SANITIZE})
endif()
if(DCSIM_FUZZERS)
  target_compile_options(dcsim_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# dcsim_library(NAME SOURCES... DEPENDS ...): a static library of one layer.
function(dcsim_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC dcsim_options ${ARG_DEPENDS})
  dcsim_reuse_precompiled(${name})
endfunction()
