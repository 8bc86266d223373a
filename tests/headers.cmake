# Every header compiles alone: one generated source per header, built with its folder's own
# include paths. The objects are never linked. A build with precompiled headers has the folder's here, too:
# it shows that a header includes what it uses of ours, and takes a third of the time; a build without
# them shows the rest.
foreach(folder config gpu models actors net)
  file(GLOB_RECURSE headers RELATIVE "${PROJECT_SOURCE_DIR}"
       "${PROJECT_SOURCE_DIR}/${folder}/*.hpp")
  # Kernel bodies that each instruction set's source compiles with its own width and flags.
  list(FILTER headers EXCLUDE REGEX "^gpu/(host/simd.*|linear/host/tile_templates|attention/host/(online_softmax|paged_kv_view|attention_(matmul|f32|bf16)))[.]hpp$")
  # Of the CUDA toolkit, which a host build does not have.
  list(FILTER headers EXCLUDE REGEX "^gpu/(cuda/(cuda_backends|stream_space)|linear/cuda/gemm_launch)[.]hpp$")
  # Shows XGrammar, whose include path its folder alone has.
  list(FILTER headers EXCLUDE REGEX "^models/text/grammar/xgrammar_parts[.]hpp$")
  set(sources "")
  foreach(header IN LISTS headers)
    string(REPLACE "/" "." name "${header}")
    set(source "${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n" @ONLY)
    list(APPEND sources "${source}")
  endforeach()
  add_library(headers_of_${folder} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_compile_options(headers_of_${folder} PRIVATE -O0 -w)
  # Not linked to what the folder links: its imported targets are known in its own directory only.
  foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS COMPILE_FEATURES)
    set_property(TARGET headers_of_${folder} APPEND PROPERTY ${property}
      $<TARGET_PROPERTY:twill_${folder},${property}>)
  endforeach()
  get_target_property(precompiled twill_${folder} PRECOMPILE_HEADERS)
  if(precompiled)
    target_precompile_headers(headers_of_${folder} PRIVATE ${precompiled})
  endif()
  list(APPEND header_targets headers_of_${folder})
endforeach()
add_custom_target(headers_alone DEPENDS ${header_targets})
