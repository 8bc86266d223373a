# One interface target carries every flag; no global flags. They are the host compiler's: nvcc knows
# other ones (twill_cuda.cmake).
add_library(twill_flags INTERFACE)
function(twill_cxx_options)
  foreach(option ${ARGN})
    target_compile_options(twill_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${option}>")
  endforeach()
endfunction()
target_compile_features(twill_flags INTERFACE cxx_std_20)
target_include_directories(twill_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(twill_flags INTERFACE TWILL_VERSION="${PROJECT_VERSION}")
twill_cxx_options(-Wall -Wextra -Wno-missing-field-initializers)
set(CMAKE_CXX_EXTENSIONS OFF)
# GCC at -O3 warns wrongly of unset members in moved variants, and before 13 of overlapping copies in
# std::string.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    twill_cxx_options(-Wno-restrict)
  endif()
  twill_cxx_options(-Wno-maybe-uninitialized)
endif()

# The baseline of a host build is AVX2 (x86-64-v3); gpu/host/ adds wider files and picks at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TWILL_X86 ON)
  twill_cxx_options(-march=x86-64-v3 -mtune=generic)
endif()

if(TWILL_WERROR)
  twill_cxx_options(-Werror)
endif()
if(TWILL_SANITIZE MATCHES "thread")
  # Of the folders that compute, CMakeLists.txt says that they are not instrumented; they are compiled as in the
  # preset release, and found in ccache.
  foreach(option -fsanitize=thread -fno-omit-frame-pointer -O1 -g1)
    twill_cxx_options($<$<NOT:$<BOOL:$<TARGET_PROPERTY:TWILL_UNINSTRUMENTED>>>:${option}>)
  endforeach()
  target_link_options(twill_flags INTERFACE -fsanitize=thread)
elseif(TWILL_SANITIZE)
  twill_cxx_options(-fsanitize=${TWILL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(twill_flags INTERFACE -fsanitize=${TWILL_SANITIZE})
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Objects are the same in every checkout: paths below it count as relative ones.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
                                  CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
endif()
