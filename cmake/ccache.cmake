# Compiles through ccache where there is one. A second checkout of the same sources in another folder
# finds what the first compiled: paths in commands are relative to the checkout, and debug information
# may name the other one.
find_program(DCSIM_CCACHE ccache DOC "Caches compiled sources")
if(DCSIM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
    ${DCSIM_CCACHE})
endif()
