# XGrammar's C++ core 0.2.8, as target twill_xgrammar. Order:
#   1. -DTWILL_XGRAMMAR=DIR: a prefix with include/xgrammar, include/dlpack and lib/libxgrammar.a
#   2. the copy that tools/build made from PyPI's xgrammar in the user's cache
set(TWILL_XGRAMMAR_VERSION 0.2.8)
set(TWILL_XGRAMMAR "" CACHE PATH "Prefix of XGrammar's C++ core; empty: the copy that tools/build made")

set(twill_xgrammar_prefix "${TWILL_XGRAMMAR}")
if(NOT twill_xgrammar_prefix)
  file(GLOB twill_xgrammar_prefix
       "${TWILL_CACHE_DIR}/xgrammar-${TWILL_XGRAMMAR_VERSION}-patched2-gcc${CMAKE_CXX_COMPILER_VERSION}")
  if(NOT twill_xgrammar_prefix)
    file(GLOB twill_xgrammar_prefix "${TWILL_CACHE_DIR}/xgrammar-${TWILL_XGRAMMAR_VERSION}-patched2-*")
    list(POP_FRONT twill_xgrammar_prefix twill_xgrammar_prefix)
  endif()
endif()
if(NOT EXISTS "${twill_xgrammar_prefix}/lib/libxgrammar.a")
  message(FATAL_ERROR "XGrammar ${TWILL_XGRAMMAR_VERSION} was not found. Run tools/build, which makes it, "
                      "or pass -DTWILL_XGRAMMAR=DIR (a prefix with include/ and lib/libxgrammar.a).")
endif()
find_package(Threads REQUIRED)
add_library(twill_xgrammar STATIC IMPORTED GLOBAL)
set_target_properties(twill_xgrammar PROPERTIES
  IMPORTED_LOCATION "${twill_xgrammar_prefix}/lib/libxgrammar.a"
  INTERFACE_INCLUDE_DIRECTORIES "${twill_xgrammar_prefix}/include"
  INTERFACE_LINK_LIBRARIES Threads::Threads)
message(STATUS "XGrammar ${TWILL_XGRAMMAR_VERSION}: ${twill_xgrammar_prefix}")
