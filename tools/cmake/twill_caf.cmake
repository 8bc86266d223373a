# Debian's libcaf-dev 0.17.6 has headers and a shared library but no CMake package.
find_path(CAF_INCLUDE_DIR caf/all.hpp)
find_library(CAF_CORE_LIBRARY caf_core)
if(NOT CAF_INCLUDE_DIR OR NOT CAF_CORE_LIBRARY)
  message(FATAL_ERROR "CAF was not found: install libcaf-dev (0.17.6)")
endif()
find_package(Threads REQUIRED)
add_library(CAF::core UNKNOWN IMPORTED)
set_target_properties(CAF::core PROPERTIES
  IMPORTED_LOCATION "${CAF_CORE_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
  INTERFACE_LINK_LIBRARIES Threads::Threads)
