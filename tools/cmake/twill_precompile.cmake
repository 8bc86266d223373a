# For builds from nothing, with TWILL_PRECOMPILE; ccache finds nothing then, and one change compiles
# more, so it is off for those who build again and again. Sources include what they use all the same:
# a build without it, and headers_alone, show what is missing; folders_together shows what a build with
# it would refuse.
#
# twill_join_folders(TARGET [ALONE source ...]): each folder's sources of the target are compiled as one,
# so that their headers are parsed, and their templates made, once per folder. Two sources of a folder
# cannot use one name for two things then, not even in unnamed namespaces. Sources with compiler options of
# their own stay alone, as do those named.
# twill_precompile(TARGET [header ...]): the standard headers that most sources include, and those
# named, are parsed once per target. A third less time.
# twill_precompile_test(TARGET): test programs share one precompiled copy of Catch2 and of the standard
# headers. Those with compiler options of their own (Kokkos brings -fopenmp) precompile theirs: GCC
# takes a precompiled header only where the options are the same.
option(TWILL_PRECOMPILE "Parse headers once for many sources (for builds from nothing)" OFF)
add_custom_target(folders_together)

function(twill_join_folders TARGET)
  cmake_parse_arguments(ARG "" "" "ALONE" ${ARGN})
  get_target_property(sources ${TARGET} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^$]*[.]cpp$")
  list(REMOVE_ITEM sources ${ARG_ALONE} "")
  foreach(source IN LISTS sources)
    get_source_file_property(options "${source}" COMPILE_OPTIONS)
    if(options)
      list(REMOVE_ITEM sources "${source}")
    endif()
    get_filename_component(folder "${source}" DIRECTORY)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "together_${folder}")
  endforeach()
  if(TWILL_PRECOMPILE)
    set(joined ${TARGET})
  else()
    # Built by tests alone, without optimisation: do the sources fit together?
    set(joined ${TARGET}_together)
    add_library(${joined} OBJECT EXCLUDE_FROM_ALL ${sources})
    foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS COMPILE_FEATURES)
      set_property(TARGET ${joined} PROPERTY ${property} $<TARGET_PROPERTY:${TARGET},${property}>)
    endforeach()
    target_compile_options(${joined} PRIVATE -O0 -w)
    add_dependencies(folders_together ${joined})
  endif()
  set_target_properties(${joined} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

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
