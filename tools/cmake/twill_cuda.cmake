# With -DTWILL_CUDA=ON: the CUDA language, for the GPUs that twill promises. Only files that include
# Kokkos or hold kernels go through nvcc; all others are compiled by the host's compiler.
if(NOT TWILL_CUDA)
  return()
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80-real;86-real;89-real;90" CACHE STRING "GPU generations")
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
# A kernel that calls a function of the host is an error: nvcc only warns of it, and drops the
# kernel's body.
set(TWILL_CUDA_OPTIONS --extended-lambda --expt-relaxed-constexpr
  "SHELL:--Werror cross-execution-space-call")
