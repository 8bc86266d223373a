# For builds from nothing, with TWILL_PRECOMPILE; ccache finds nothing then, and one change compiles
# more, so it is off for those who build again and again. Sources include what they use all the same:
# a build without it, and headers_alone, show what is missing.
#
# twill_precompile(TARGET [header ...]): the standard headers that most sources include, and those
# named, are parsed once per target. A third less time.
# twill_bundle(TARGET): sources are compiled six at a time. Their unnamed namespaces are one then.
option(TWILL_PRECOMPILE "Parse headers once for many sources (for builds from nothing)" OFF)

function(twill_precompile TARGET)
  if(TWILL_PRECOMPILE)
    target_precompile_headers(${TARGET} PRIVATE
      <algorithm> <array> <chrono> <cstdint> <cstring> <fstream> <functional> <map>
      <memory> <optional> <span> <stdexcept> <string> <string_view> <utility> <vector> ${ARGN})
    # GCC takes precompiled system headers for ours and warns of what is in them.
    target_compile_options(${TARGET} PRIVATE -w)
  endif()
endfunction()

function(twill_bundle TARGET)
  if(TWILL_PRECOMPILE)
    set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
endfunction()
