# Finds libtorch, CUDA's runtime and NCCL inside the torch package of a Python environment, and offers
# them as dcsim_torch. No CUDA toolkit is needed: wheels bring headers and libraries, torch's own
# requirements all but two folders of headers, which cuda-toolkit[cccl,crt] brings.
#
#   DCSIM_EXEC     AUTO builds exec and dc-run when torch is found, ON requires it, OFF leaves them out
#   DCSIM_PYTHON   the Python whose torch is used, and for which DCSIM_PYTHON_MODULE builds a module
set(DCSIM_EXEC AUTO CACHE STRING "Build exec and dc-run: AUTO, ON, OFF")
set(DCSIM_TORCH_VERSION 2.11.0)
if(DEFINED ENV{DCSIM_VENV})
  set(default_python $ENV{DCSIM_VENV}/bin/python)
elseif(EXISTS $ENV{HOME}/.cache/dcsim/venv-torch-${DCSIM_TORCH_VERSION}/bin/python)
  set(default_python $ENV{HOME}/.cache/dcsim/venv-torch-${DCSIM_TORCH_VERSION}/bin/python)
else()
  set(default_python python3)
endif()
set(DCSIM_PYTHON ${default_python} CACHE STRING "Python whose torch package is used")

set(DCSIM_HAS_EXEC OFF)
if(NOT DCSIM_EXEC STREQUAL OFF)
  execute_process(
    COMMAND ${DCSIM_PYTHON} -c "import importlib.util as u, importlib.metadata as m; print(u.find_spec('torch').submodule_search_locations[0] + ';' + m.version('torch'), end='')"
    OUTPUT_VARIABLE torch_found RESULT_VARIABLE code ERROR_QUIET)
  if(code EQUAL 0)
    list(GET torch_found 0 torch_root)
    list(GET torch_found 1 torch_version)
    get_filename_component(site ${torch_root} DIRECTORY)
    set(nvidia ${site}/nvidia)
    find_path(DCSIM_CUDA_CRT crt/host_config.h
      HINTS ${nvidia}/cu13/include /usr/local/cuda/include DOC "CUDA headers of nvidia-cuda-crt")
    find_path(DCSIM_CUDA_CCCL nv/target
      HINTS ${nvidia}/cu13/include /usr/local/cuda/include DOC "CUDA headers of nvidia-cuda-cccl")
    if(torch_version MATCHES "^${DCSIM_TORCH_VERSION}([+].*)?$" AND DCSIM_CUDA_CRT AND DCSIM_CUDA_CCCL)
      set(DCSIM_HAS_EXEC ON)
    elseif(NOT DCSIM_CUDA_CRT OR NOT DCSIM_CUDA_CCCL)
      set(reason "CUDA's headers crt/host_config.h or nv/target are missing: ${DCSIM_PYTHON} -m pip install 'cuda-toolkit[cccl,crt]==13.0.2'")
    else()
      set(reason "${DCSIM_PYTHON} has torch ${torch_version}, needed is ${DCSIM_TORCH_VERSION}")
    endif()
  else()
    set(reason "${DCSIM_PYTHON} has no torch")
  endif()
  if(DCSIM_EXEC STREQUAL ON AND NOT DCSIM_HAS_EXEC)
    message(FATAL_ERROR "DCSIM_EXEC is ON, but ${reason} (./tools/test.sh installs what it needs)")
  endif()
  if(NOT DCSIM_HAS_EXEC)
    message(STATUS "exec and dc-run are not built: ${reason}")
  endif()
endif()

if(DCSIM_HAS_EXEC)
  message(STATUS "exec uses torch ${torch_version} of ${DCSIM_PYTHON}")
  add_library(dcsim_torch INTERFACE)
  target_include_directories(dcsim_torch SYSTEM INTERFACE
    ${torch_root}/include ${nvidia}/cu13/include ${nvidia}/nccl/include ${DCSIM_CUDA_CRT}
    ${DCSIM_CUDA_CCCL})
  target_link_directories(dcsim_torch INTERFACE
    ${torch_root}/lib ${nvidia}/nccl/lib ${nvidia}/cu13/lib)
  # --no-as-needed: torch_cuda registers its kernels when it is loaded, which nothing refers to.
  target_link_libraries(dcsim_torch INTERFACE
    -Wl,--no-as-needed torch torch_cpu torch_cuda c10 c10_cuda -l:libnccl.so.2 -l:libcudart.so.13
    -l:libcupti.so.13 -Wl,--as-needed)
  # Where an installed dc-run finds the package's libraries.
  set(DCSIM_TORCH_RPATH ${torch_root}/lib ${nvidia}/nccl/lib ${nvidia}/cu13/lib)
  target_link_options(dcsim_torch INTERFACE
    -Wl,-rpath,${torch_root}/lib -Wl,-rpath,${nvidia}/nccl/lib -Wl,-rpath,${nvidia}/cu13/lib)
endif()
