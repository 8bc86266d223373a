# CAF's core, as target CAF::core: Debian's libcaf-dev 0.17.6 has headers and a shared library but no CMake package.
# ThreadSanitizer needs a CAF that was built with it, which tools/build makes for the preset tsan.
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
find_package(Threads REQUIRED)
add_library(CAF::core UNKNOWN IMPORTED)
set_target_properties(CAF::core PROPERTIES
  IMPORTED_LOCATION "${CAF_CORE_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
  INTERFACE_LINK_LIBRARIES Threads::Threads)
