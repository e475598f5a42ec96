# Headers of libraries that most sources of a folder include, parsed once instead of in every source. A
# folder says in DCSIM_PRECOMPILED which of these targets its own reuse: their options must be the same.
# Without DCSIM_PRECOMPILE every source shows that it includes what it uses; the presets release and
# tidy build so, and so does every build with ccache, which finds nothing of another folder beside
# precompiled headers.
option(DCSIM_PRECOMPILE "Precompile the headers of libraries, where there is no ccache" OFF)
if(DCSIM_CCACHE)
  set(DCSIM_PRECOMPILE OFF)
endif()

# Clang instantiates templates once with the header. GCC does in every source, and gains only where
# parsing takes longest: libtorch. It also forgets that these headers are a system's, and warns of what
# it inlines from them.
set(DCSIM_PRECOMPILE_ALL OFF)
set(precompiled_options)
if(DCSIM_PRECOMPILE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(DCSIM_PRECOMPILE_ALL ON)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(precompiled_options -Wno-array-bounds -Wno-stringop-overflow)
endif()

# dcsim_precompile(NAME HEADERS... DEPENDS ...): a target that the folder's others reuse from now on.
macro(dcsim_precompile name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPENDS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp CONTENT "" @ONLY)
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE dcsim_options ${ARG_DEPENDS})
  target_compile_options(${name} PRIVATE ${precompiled_options})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  set(DCSIM_PRECOMPILED ${name})
endmacro()

# dcsim_reuse_precompiled(TARGET): with those of its folder, where there are any.
function(dcsim_reuse_precompiled target)
  if(DCSIM_PRECOMPILED)
    target_compile_options(${target} PRIVATE ${precompiled_options})
    target_precompile_headers(${target} REUSE_FROM ${DCSIM_PRECOMPILED})
  endif()
endfunction()

set(DCSIM_STANDARD_HEADERS
  <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <iostream> <limits> <map> <memory> <numeric>
  <optional> <set> <span> <sstream> <string> <string_view> <tuple> <unordered_map> <utility> <vector>
  <nlohmann/json.hpp>)
set(DCSIM_TEST_HEADERS <gmock/gmock.h> <gtest/gtest.h>)
set(DCSIM_TORCH_HEADERS
  <ATen/Context.h> <ATen/core/Tensor.h> <ATen/core/dispatch/Dispatcher.h> <ATen/cuda/CUDAEvent.h>
  <c10/cuda/CUDACachingAllocator.h> <c10/cuda/CUDAStream.h>)
