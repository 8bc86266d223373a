# As a module, twill_embed_page(TARGET FOLDER file ...) makes a library that holds the files' bytes as
# twill::net::page_files(); as a script (cmake -DOUT=... -DFOLDER=... -DFILES="a;b" -P), it writes that source.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(TWILL_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
  function(twill_embed_page TARGET FOLDER)
    set(out "${CMAKE_CURRENT_BINARY_DIR}/page_files.cpp")
    list(TRANSFORM ARGN PREPEND "${FOLDER}/" OUTPUT_VARIABLE paths)
    add_custom_command(OUTPUT "${out}"
      COMMAND "${CMAKE_COMMAND}" "-DOUT=${out}" "-DFOLDER=${FOLDER}" "-DFILES=${ARGN}" -P "${TWILL_EMBED_SCRIPT}"
      DEPENDS ${paths} "${TWILL_EMBED_SCRIPT}" VERBATIM)
    add_library(${TARGET} STATIC "${out}")
    string(REPLACE "twill_" "twill::" alias "${TARGET}")
    add_library(${alias} ALIAS ${TARGET})
    target_link_libraries(${TARGET} PUBLIC twill_flags)
  endfunction()
  return()
endif()

set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

set(arrays "")
set(rows "")
set(number 0)
foreach(name IN LISTS FILES)
  file(READ "${FOLDER}/${name}" hex HEX)
  file(SHA256 "${FOLDER}/${name}" hash)
  string(SUBSTRING "${hash}" 0 20 tag)
  string(LENGTH "${hex}" digits)
  math(EXPR bytes "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" text "${hex}")
  string(REGEX REPLACE "^.*\\." "" suffix "${name}")
  if(NOT DEFINED type_${suffix})
    message(FATAL_ERROR "twill_embed: no content type is known for ${name}; add one for .${suffix}")
  endif()
  string(APPEND arrays "constexpr char file_${number}[] =\n    \"${text}\";\n")
  string(APPEND rows "    {\"${name}\", \"${type_${suffix}}\", \"\\\"${tag}\\\"\", {file_${number}, ${bytes}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUT}" "// Written by tools/cmake/twill_embed.cmake.
#include \"net/http/page_files.hpp\"

namespace twill::net {
namespace {

${arrays}
constexpr page_file files[] = {
${rows}};

} // namespace

std::span<const page_file> page_files() {
  return files;
}

} // namespace twill::net
")
