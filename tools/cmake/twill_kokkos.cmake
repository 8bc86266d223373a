# Kokkos 3.4.1 to 5.x with OpenMP. Order: -DKokkos_ROOT / a system package, then the copy that
# tools/build made from PyPI's pykokkos-base under the user's cache, then (by option) FetchContent.
# Trilinos' package in Debian has Serial only: it is refused by the OpenMP test, never used by accident.
if(TWILL_FETCH_KOKKOS)
  include(FetchContent)
  FetchContent_Declare(kokkos
    GIT_REPOSITORY https://github.com/kokkos/kokkos.git
    GIT_TAG 1b1383c6001f3bfe9fe309ca923c2d786600cc79 # 4.6.01
    GIT_SHALLOW OFF)
  set(Kokkos_ENABLE_SERIAL ON CACHE BOOL "")
  set(Kokkos_ENABLE_OPENMP ON CACHE BOOL "")
  FetchContent_MakeAvailable(kokkos)
  return()
endif()

function(twill_try_kokkos out)
  find_package(Kokkos QUIET CONFIG ${ARGN})
  set(ok OFF)
  if(Kokkos_FOUND)
    if("OPENMP" IN_LIST Kokkos_DEVICES OR "OpenMP" IN_LIST Kokkos_DEVICES)
      if(NOT Kokkos_VERSION OR NOT Kokkos_VERSION VERSION_LESS 3.4.1)
        set(ok ON)
      endif()
    endif()
    if(NOT ok)
      message(STATUS "Kokkos at ${Kokkos_DIR} refused: needs >= 3.4.1 with OpenMP, "
                     "found ${Kokkos_VERSION} with '${Kokkos_DEVICES}'")
      unset(Kokkos_DIR CACHE)
      unset(Kokkos_DIR)
    endif()
  endif()
  set(${out} ${ok} PARENT_SCOPE)
endfunction()

if(DEFINED ENV{XDG_CACHE_HOME})
  set(TWILL_CACHE_DIR "$ENV{XDG_CACHE_HOME}/twill")
else()
  set(TWILL_CACHE_DIR "$ENV{HOME}/.cache/twill")
endif()
file(GLOB twill_cached_kokkos "${TWILL_CACHE_DIR}/kokkos-3.4.1-*/lib*/cmake/Kokkos")
set(twill_have_kokkos OFF)
twill_try_kokkos(twill_have_kokkos)
if(NOT twill_have_kokkos AND twill_cached_kokkos)
  twill_try_kokkos(twill_have_kokkos PATHS ${twill_cached_kokkos} NO_DEFAULT_PATH)
endif()
if(NOT twill_have_kokkos)
  message(FATAL_ERROR "No Kokkos >= 3.4.1 with OpenMP was found. Run tools/build, which makes one, "
                      "or pass -DKokkos_ROOT=DIR or -DTWILL_FETCH_KOKKOS=ON.")
endif()
find_package(Kokkos REQUIRED CONFIG PATHS ${Kokkos_DIR} NO_DEFAULT_PATH)
message(STATUS "Kokkos ${Kokkos_VERSION} (${Kokkos_DEVICES}) at ${Kokkos_DIR}")
