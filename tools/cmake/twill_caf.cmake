# CAF's core, as target CAF::core: Debian's libcaf-dev 0.17.6 has headers and a shared library but no CMake package.
# ThreadSanitizer needs a CAF that was built with it, which tools/build makes for the preset tsan.
# Sets TWILL_CAF_VERSION, for example 0.17.6. actors/ is written for the series 0.17: CAF 0.18 and 1.0 changed its API.
if(TWILL_SANITIZE MATCHES "thread")
  set(twill_caf_prefix "${TWILL_CACHE_DIR}/caf-0.17.6-tsan-gcc${CMAKE_CXX_COMPILER_VERSION}")
  set(CAF_INCLUDE_DIR "${twill_caf_prefix}/include")
  set(CAF_CORE_LIBRARY "${twill_caf_prefix}/lib/libcaf_core.a")
  if(NOT EXISTS "${CAF_CORE_LIBRARY}")
    message(FATAL_ERROR "CAF built with ThreadSanitizer was not found. Run `tools/build tsan TARGET`, which makes it.")
  endif()
else()
  find_path(CAF_INCLUDE_DIR caf/all.hpp)
  find_library(CAF_CORE_LIBRARY caf_core)
  if(NOT CAF_INCLUDE_DIR OR NOT CAF_CORE_LIBRARY)
    message(FATAL_ERROR "CAF was not found: install libcaf-dev (0.17.6)")
  endif()
endif()
# CAF numbers its releases as major * 10000 + minor * 100 + patch: 0.17.6 is 1706.
set(TWILL_CAF_VERSION "a release without CAF_VERSION in caf/config.hpp")
if(EXISTS "${CAF_INCLUDE_DIR}/caf/config.hpp")
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" twill_caf_line REGEX "^#define CAF_VERSION [0-9]+")
  if(twill_caf_line MATCHES "CAF_VERSION ([0-9]+)")
    math(EXPR twill_caf_major "${CMAKE_MATCH_1} / 10000")
    math(EXPR twill_caf_minor "${CMAKE_MATCH_1} / 100 % 100")
    math(EXPR twill_caf_patch "${CMAKE_MATCH_1} % 100")
    set(TWILL_CAF_VERSION "${twill_caf_major}.${twill_caf_minor}.${twill_caf_patch}")
  endif()
endif()
if(NOT TWILL_CAF_VERSION MATCHES "^0\\.17\\.")
  message(FATAL_ERROR "CAF must be of the series 0.17, got ${TWILL_CAF_VERSION} in ${CAF_INCLUDE_DIR}. Install "
    "libcaf-dev (0.17.6) of Debian 12 or 13, or name a CAF 0.17 of your own by -DCAF_INCLUDE_DIR=FOLDER and "
    "-DCAF_CORE_LIBRARY=FILE.")
endif()
find_package(Threads REQUIRED)
add_library(CAF::core UNKNOWN IMPORTED)
set_target_properties(CAF::core PROPERTIES
  IMPORTED_LOCATION "${CAF_CORE_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
  INTERFACE_LINK_LIBRARIES Threads::Threads)
