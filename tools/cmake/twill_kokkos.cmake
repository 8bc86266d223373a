# Kokkos 3.4.1 to 5.x with OpenMP, as target Kokkos::kokkos. Order:
#   1. -DTWILL_FETCH_KOKKOS=ON: a pinned release, built with twill (CUDA users without their own)
#   2. -DKokkos_ROOT=DIR or CMAKE_PREFIX_PATH: the user's own, CUDA or any other backend
#   3. the system's headers and library
#   4. the copy that tools/build made from PyPI's pykokkos-base in the user's cache
# Trilinos' package has Serial only: it fails the OpenMP test and is never used by accident.
set(TWILL_KOKKOS_OLDEST 3.4.1)

if(TWILL_FETCH_KOKKOS)
  include(FetchContent)
  FetchContent_Declare(kokkos
    GIT_REPOSITORY https://github.com/kokkos/kokkos.git
    GIT_TAG 1b1383c6001f3bfe9fe309ca923c2d786600cc79) # 4.6.01
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

if(DEFINED ENV{XDG_CACHE_HOME})
  set(TWILL_CACHE_DIR "$ENV{XDG_CACHE_HOME}/twill")
else()
  set(TWILL_CACHE_DIR "$ENV{HOME}/.cache/twill")
endif()

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
