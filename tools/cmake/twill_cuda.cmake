# With -DTWILL_CUDA=ON: the CUDA language, for the GPUs that twill promises. Only files that include
# Kokkos or hold kernels go through nvcc; all others are compiled by the host's compiler.
if(NOT TWILL_CUDA)
  return()
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80-real;86-real;89-real;90" CACHE STRING "GPU generations")
endif()
enable_language(CUDA)
# C++20 is asked for by its flag, because CMake before 3.25.2 does not know that nvcc has it. A kernel that
# calls a function of the host is an error: nvcc only warns of it, and drops the kernel's body.
set(TWILL_CUDA_OPTIONS -std=c++20 --extended-lambda --expt-relaxed-constexpr
  "SHELL:--Werror cross-execution-space-call" "SHELL:--diag-error 20011,20014")
