# twill_add_component(NAME SOURCES a.cpp ... PUBLIC lib ... PRIVATE lib ... [PRECOMPILE header ...]
#                     [ALONE source ...])
#   One static library per folder. PUBLIC and PRIVATE state the dependency table of the design, so a
#   third party's include path reaches only its owner.
function(twill_add_component NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE;PRECOMPILE;ALONE" ${ARGN})
  add_library(twill_${NAME} STATIC ${ARG_SOURCES})
  add_library(twill::${NAME} ALIAS twill_${NAME})
  target_link_libraries(twill_${NAME} PUBLIC twill_flags ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  if(ARG_PRECOMPILE)
    twill_precompile(twill_${NAME} ${ARG_PRECOMPILE})
  endif()
  twill_join_folders(twill_${NAME} ALONE ${ARG_ALONE})
endfunction()

# twill_add_test(NAME SOURCES a_test.cpp ... LIBS lib ... [LABELS fast|long|model])
#   One Catch2 program per folder; it links that folder alone, so a wrong dependency fails to link.
#   The label long is for what tools/test --long alone runs.
function(twill_add_test NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(test_${NAME} ${ARG_SOURCES})
  target_link_libraries(test_${NAME} PRIVATE twill_flags twill_catch ${ARG_LIBS})
  # Oracles in tests need some speed, not the last of it, and -O3 costs half as much again to compile.
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(test_${NAME} PRIVATE -O1)
  endif()
  twill_precompile_test(test_${NAME})
  foreach(label fast long)
    if(label IN_LIST ARG_LABELS)
      add_dependencies(${label}_tests test_${NAME})
    endif()
  endforeach()
  add_test(NAME ${NAME} COMMAND test_${NAME})
  set_tests_properties(${NAME} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600)
endfunction()
