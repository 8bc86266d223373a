# For builds from nothing, with TWILL_PRECOMPILE; ccache finds nothing then, and one change compiles
# more, so it is off for those who build again and again. Sources include what they use all the same:
# a build without it, and headers_alone, show what is missing.
#
# twill_precompile(TARGET [header ...]): the standard headers that most sources include, and those
# named, are parsed once per target. A third less time.
# twill_precompile_test(TARGET): test programs share one precompiled copy of Catch2 and of the standard
# headers. Those with compiler options of their own (Kokkos brings -fopenmp) precompile theirs: GCC
# takes a precompiled header only where the options are the same.
# twill_bundle(TARGET): sources of one folder are compiled TWILL_BUNDLE at a time. Their unnamed
# namespaces are one then; with 1000 every clash of names that a new source could bring shows.
option(TWILL_PRECOMPILE "Parse headers once for many sources (for builds from nothing)" OFF)
set(TWILL_BUNDLE 6 CACHE STRING "Sources of a folder in one bundle, with TWILL_PRECOMPILE")

function(twill_precompile TARGET)
  if(TWILL_PRECOMPILE)
    target_precompile_headers(${TARGET} PRIVATE
      <algorithm> <array> <chrono> <cstdint> <cstring> <fstream> <functional> <map>
      <memory> <optional> <span> <stdexcept> <string> <string_view> <utility> <vector> ${ARGN})
    # GCC takes precompiled system headers for ours and warns of what is in them.
    target_compile_options(${TARGET} PRIVATE -w)
  endif()
endfunction()

function(twill_precompile_test TARGET)
  set(catch "${PROJECT_SOURCE_DIR}/tests/catch.hpp")
  get_target_property(libraries ${TARGET} LINK_LIBRARIES)
  if(NOT TWILL_PRECOMPILE)
    return()
  elseif("Kokkos::kokkos" IN_LIST libraries)
    twill_precompile(${TARGET} "${catch}")
    return()
  elseif(NOT TARGET twill_tests_precompiled)
    file(WRITE "${CMAKE_BINARY_DIR}/tests_precompiled.cpp" "")
    add_library(twill_tests_precompiled OBJECT "${CMAKE_BINARY_DIR}/tests_precompiled.cpp")
    target_link_libraries(twill_tests_precompiled PRIVATE twill_flags twill_catch)
    # As twill_add_test compiles its programs.
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
      target_compile_options(twill_tests_precompiled PRIVATE -O1)
    endif()
    twill_precompile(twill_tests_precompiled "${catch}")
  endif()
  target_precompile_headers(${TARGET} REUSE_FROM twill_tests_precompiled)
  target_compile_options(${TARGET} PRIVATE -w)
endfunction()

function(twill_bundle TARGET)
  if(TWILL_PRECOMPILE)
    set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    get_target_property(sources ${TARGET} SOURCES)
    foreach(source IN LISTS sources)
      cmake_path(GET source PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "in_${folder}" folder)
      math(EXPR count_${folder} "${count_${folder}} + 1")
      math(EXPR bundle "(${count_${folder}} - 1) / ${TWILL_BUNDLE}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${bundle})
    endforeach()
  endif()
endfunction()
