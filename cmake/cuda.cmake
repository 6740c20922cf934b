# Decides whether the CUDA parts are built, enables the language and sets CUSYNC_WITH_CUDA.
# AUTO never fails: without a GPU, nvcc or a host compiler that nvcc accepts, the virtual GPU is used.

set(CUSYNC_WITH_CUDA OFF)
set(cuda_advice "install the CUDA toolkit 12.4 or later (https://developer.nvidia.com/cuda-downloads)")

if(CUSYNC_CUDA AND NOT CMAKE_CUDA_COMPILER)
  unset(CMAKE_CUDA_COMPILER CACHE) # a miss of an earlier configure: look again
  find_program(CUSYNC_NVCC nvcc
    HINTS ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
  mark_as_advanced(CUSYNC_NVCC)
  if(CUSYNC_NVCC AND NOT DEFINED ENV{CUDACXX})
    set(ENV{CUDACXX} ${CUSYNC_NVCC}) # where check_language and enable_language look
  endif()
endif()
set(CMAKE_CUDA_ARCHITECTURES ${CUSYNC_CUDA_ARCHITECTURES})

if(CUSYNC_CUDA STREQUAL "AUTO")
  execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
  if(no_gpu STREQUAL "0")
    execute_process(COMMAND $ENV{CUDACXX} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
    string(REGEX MATCH "release ([0-9.]+)" _ "${nvcc_version}")
    if(CMAKE_MATCH_1 VERSION_GREATER_EQUAL 12) # Debian 12's own nvcc, 11.8, has no C++20
      include(CheckLanguage)
      check_language(CUDA)
    endif()
    if(CMAKE_CUDA_COMPILER)
      set(CUSYNC_WITH_CUDA ON)
    else()
      message(NOTICE "cusync: a GPU is here, but no nvcc with C++20 that works with this compiler: "
        "${cuda_advice} to run on it; going on with the virtual GPU")
    endif()
  endif()
elseif(CUSYNC_CUDA)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    message(FATAL_ERROR "cusync: CUSYNC_CUDA is ON, but there is no nvcc: ${cuda_advice}")
  endif()
  set(CUSYNC_WITH_CUDA ON)
endif()

if(CUSYNC_WITH_CUDA)
  enable_language(CUDA)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
    message(FATAL_ERROR "cusync: nvcc ${CMAKE_CUDA_COMPILER_VERSION} has no C++20: ${cuda_advice}")
  endif()
  # Without this, the packages' /usr/include lands on nvcc's command line, before the C++ headers.
  list(APPEND CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  find_package(CUDAToolkit REQUIRED) # CUDA::cudart_static, for host code that calls the runtime
endif()
