# twill_precompile(TARGET [header ...]): with TWILL_PRECOMPILE, the standard headers that most sources
# include, and those named, are parsed once per target. A build from nothing takes a third less time;
# ccache finds nothing then, so it is off for those who build again and again. Sources include what
# they use all the same: a build without it, and headers_alone, show what is missing.
option(TWILL_PRECOMPILE "Parse shared headers once per target (for builds from nothing)" OFF)

function(twill_precompile TARGET)
  if(TWILL_PRECOMPILE)
    target_precompile_headers(${TARGET} PRIVATE
      <algorithm> <array> <chrono> <cstdint> <cstring> <fstream> <functional> <map>
      <memory> <optional> <span> <stdexcept> <string> <string_view> <utility> <vector> ${ARGN})
    # GCC takes precompiled system headers for ours and warns of what is in them.
    target_compile_options(${TARGET} PRIVATE -w)
  endif()
endfunction()
