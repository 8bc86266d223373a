# Kokkos 3.4.1 to 5.x with OpenMP, as target Kokkos::kokkos. Order:
#   0. -DTWILL_CUDA=ON: the user's own with CUDA, in -DKokkos_ROOT=DIR and nowhere else
#   1. -DTWILL_FETCH_KOKKOS=ON: a pinned release, built with twill
#   2. -DKokkos_ROOT=DIR or CMAKE_PREFIX_PATH: the user's own
#   3. the system's headers and library
#   4. the copy that tools/build made from PyPI's pykokkos-base in the user's cache
# Trilinos' package has Serial only: it fails the OpenMP test and is never used by accident.
set(TWILL_KOKKOS_OLDEST 3.4.1)

if(DEFINED ENV{XDG_CACHE_HOME})
  set(TWILL_CACHE_DIR "$ENV{XDG_CACHE_HOME}/twill")
else()
  set(TWILL_CACHE_DIR "$ENV{HOME}/.cache/twill")
endif()

# Kokkos with CUDA is taken by its headers and library: its CMake package would send every file that
# links it through its compiler wrapper. OpenMP beside CUDA is welcome, not needed.
function(twill_cuda_kokkos)
  if(NOT Kokkos_ROOT)
    set(Kokkos_ROOT "$ENV{Kokkos_ROOT}")
  endif()
  set(header "${Kokkos_ROOT}/include/KokkosCore_config.h")
  find_library(TWILL_KOKKOS_CORE kokkoscore PATHS "${Kokkos_ROOT}" PATH_SUFFIXES lib lib64
               NO_DEFAULT_PATH)
  if(NOT EXISTS "${header}" OR NOT TWILL_KOKKOS_CORE)
    message(FATAL_ERROR "TWILL_CUDA needs an installed Kokkos with CUDA: run tools/build cuda, which "
                        "makes one, or pass -DKokkos_ROOT=DIR, where DIR/include and DIR/lib hold "
                        "its headers and libkokkoscore; got '${Kokkos_ROOT}'")
  endif()
  file(STRINGS "${header}" config REGEX "^#define KOKKOS_(VERSION|ENABLE_OPENMP|ENABLE_CUDA)( |$)")
  string(REGEX MATCH "KOKKOS_VERSION ([0-9]+)" found "${config}")
  set(number "${CMAKE_MATCH_1}")
  set(oldest 40001)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    set(oldest 40699) # development trees count their patches from 99; releases know CUDA 13 from 4.7.02
  endif()
  if(NOT config MATCHES "ENABLE_CUDA" OR number LESS oldest)
    message(FATAL_ERROR "Kokkos in ${Kokkos_ROOT} must have CUDA and be at least 4.0.01 for CUDA 12 or "
                        "4.7.02 for CUDA 13; its number is ${number}, CUDA is "
                        "${CMAKE_CUDA_COMPILER_VERSION}")
  endif()
  find_package(Threads REQUIRED)
  find_library(TWILL_CUDA_DRIVER cuda PATHS ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES}
               PATH_SUFFIXES stubs)
  # The driver's library is a need of the program only where Kokkos calls more of it than
  # twill_cuda_driver looks up.
  set(libraries "twill_cuda_driver;Threads::Threads;${CMAKE_DL_LIBS}")
  if(TWILL_CUDA_DRIVER)
    list(APPEND libraries "-Wl,--push-state,--as-needed,${TWILL_CUDA_DRIVER},--pop-state")
  endif()
  add_library(Kokkos::kokkos UNKNOWN IMPORTED GLOBAL)
  if(config MATCHES "ENABLE_OPENMP")
    find_package(OpenMP REQUIRED COMPONENTS CXX)
    list(APPEND libraries ${OpenMP_CXX_LIBRARIES})
    set_property(TARGET Kokkos::kokkos PROPERTY INTERFACE_COMPILE_OPTIONS
      "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${OpenMP_CXX_FLAGS}>")
  endif()
  set_property(TARGET Kokkos::kokkos APPEND PROPERTY INTERFACE_COMPILE_OPTIONS
    "$<$<COMPILE_LANGUAGE:CUDA>:${TWILL_CUDA_OPTIONS}>")
  set_target_properties(Kokkos::kokkos PROPERTIES
    IMPORTED_LOCATION "${TWILL_KOKKOS_CORE}"
    INTERFACE_INCLUDE_DIRECTORIES "${Kokkos_ROOT}/include"
    INTERFACE_LINK_LIBRARIES "${libraries}")
  message(STATUS "Kokkos ${number} with CUDA: ${TWILL_KOKKOS_CORE}")
endfunction()

if(TWILL_CUDA)
  if(TWILL_FETCH_KOKKOS)
    message(FATAL_ERROR "TWILL_FETCH_KOKKOS builds a Kokkos for the host alone, and must be OFF with TWILL_CUDA, "
                        "which takes your own: -DKokkos_ROOT=DIR")
  endif()
  twill_cuda_kokkos()
  return()
endif()

if(TWILL_FETCH_KOKKOS)
  # The release that tools/build cuda builds, too (tools/detail/cuda_setup/kokkos.py). Without a network:
  # -DFETCHCONTENT_SOURCE_DIR_KOKKOS=DIR, which holds its unpacked sources.
  include(FetchContent)
  if(POLICY CMP0135)
    cmake_policy(SET CMP0135 NEW) # unpacked files get the time of unpacking
  endif()
  FetchContent_Declare(kokkos
    URL https://github.com/kokkos/kokkos/releases/download/4.7.03/kokkos-4.7.03.tar.gz
    URL_HASH SHA256=969e7933b9426219b220f08036e489b3226e6d8cd24eecf2c5b80df8c37443c0)
  set(Kokkos_ENABLE_SERIAL ON CACHE BOOL "")
  set(Kokkos_ENABLE_OPENMP ON CACHE BOOL "")
  FetchContent_MakeAvailable(kokkos)
  return()
endif()

# Debian's libkokkos-dev 5.2 ships a CMake package that names a library it does not ship, and including
# it is a fatal error. So the system's Kokkos is taken by its header and library.
function(twill_system_kokkos)
  find_path(TWILL_KOKKOS_INCLUDE KokkosCore_config.h PATH_SUFFIXES kokkos NO_CMAKE_PATH)
  find_library(TWILL_KOKKOS_CORE kokkoscore NO_CMAKE_PATH)
  if(NOT TWILL_KOKKOS_INCLUDE OR NOT TWILL_KOKKOS_CORE)
    return()
  endif()
  file(STRINGS "${TWILL_KOKKOS_INCLUDE}/KokkosCore_config.h" config
       REGEX "^#define KOKKOS_(VERSION|ENABLE_OPENMP|ENABLE_CUDA|ENABLE_HIP)( |$)")
  string(REGEX MATCH "KOKKOS_VERSION ([0-9]+)" found "${config}")
  set(number "${CMAKE_MATCH_1}")
  if(NOT config MATCHES "ENABLE_OPENMP" OR config MATCHES "ENABLE_(CUDA|HIP)" OR number LESS 30401)
    message(STATUS "Kokkos in ${TWILL_KOKKOS_INCLUDE} refused: no OpenMP, or older than "
                   "${TWILL_KOKKOS_OLDEST}")
    return()
  endif()
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  find_package(Threads REQUIRED)
  add_library(Kokkos::kokkos UNKNOWN IMPORTED GLOBAL)
  set_target_properties(Kokkos::kokkos PROPERTIES
    IMPORTED_LOCATION "${TWILL_KOKKOS_CORE}"
    INTERFACE_INCLUDE_DIRECTORIES "${TWILL_KOKKOS_INCLUDE}"
    INTERFACE_LINK_LIBRARIES "OpenMP::OpenMP_CXX;Threads::Threads;${CMAKE_DL_LIBS}")
  message(STATUS "Kokkos ${number} of the system: ${TWILL_KOKKOS_CORE}")
endfunction()

function(twill_packaged_kokkos)
  find_package(Kokkos QUIET CONFIG ${ARGN})
  if(NOT Kokkos_FOUND)
    return()
  endif()
  if(NOT "OPENMP" IN_LIST Kokkos_DEVICES
     OR (Kokkos_VERSION AND Kokkos_VERSION VERSION_LESS TWILL_KOKKOS_OLDEST))
    message(FATAL_ERROR "Kokkos at ${Kokkos_DIR} cannot be used: needs >= ${TWILL_KOKKOS_OLDEST} with "
                        "OpenMP, found ${Kokkos_VERSION} with '${Kokkos_DEVICES}'")
  endif()
  set_target_properties(Kokkos::kokkos PROPERTIES IMPORTED_GLOBAL TRUE)
  message(STATUS "Kokkos ${Kokkos_VERSION} (${Kokkos_DEVICES}) at ${Kokkos_DIR}")
endfunction()

if(Kokkos_ROOT OR DEFINED ENV{Kokkos_ROOT} OR CMAKE_PREFIX_PATH)
  twill_packaged_kokkos(NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH)
endif()
if(NOT TARGET Kokkos::kokkos)
  twill_system_kokkos()
endif()
if(NOT TARGET Kokkos::kokkos)
  file(GLOB twill_cached_kokkos
       "${TWILL_CACHE_DIR}/kokkos-3.4.1-gcc${CMAKE_CXX_COMPILER_VERSION}/lib*/cmake/Kokkos"
       "${TWILL_CACHE_DIR}/kokkos-3.4.1-*/lib*/cmake/Kokkos")
  if(twill_cached_kokkos)
    twill_packaged_kokkos(PATHS ${twill_cached_kokkos} NO_DEFAULT_PATH)
  endif()
endif()
if(NOT TARGET Kokkos::kokkos)
  message(FATAL_ERROR "No Kokkos >= ${TWILL_KOKKOS_OLDEST} with OpenMP was found. Run tools/build, which "
                      "makes one, or pass -DKokkos_ROOT=DIR or -DTWILL_FETCH_KOKKOS=ON.")
endif()
