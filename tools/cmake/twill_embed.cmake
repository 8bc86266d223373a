# As a module, twill_embed_page(TARGET FOLDER FILES file ... BUNDLES file ... DOCUMENTS path ...) makes a library that holds bytes as
# twill::net::page_files(): files and documents (from elsewhere) as they are, and scripts and styles together with all that they import, as esbuild bundles
# them, so that a browser asks once for each. As a script (cmake -DOUT=... -DFILES="a;b" -P), it writes that source.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(TWILL_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
  find_program(TWILL_ESBUILD esbuild DOC "The bundler of the pages")
  function(twill_embed_page TARGET FOLDER)
    cmake_parse_arguments(PARSE_ARGV 2 PAGE "" "" "FILES;BUNDLES;DOCUMENTS")
    if(NOT TWILL_ESBUILD)
      message(FATAL_ERROR "esbuild bundles the pages and is missing: apt-get install esbuild, or npm install esbuild and "
        "-DTWILL_ESBUILD=FOLDER/node_modules/.bin/esbuild")
    endif()
    set(files ${PAGE_FILES})
    list(TRANSFORM files PREPEND "${FOLDER}/")
    list(APPEND files ${PAGE_DOCUMENTS})
    # A folder's time changes with its names. CONFIGURE_DEPENDS would look at them in each build, and `ninja -n` could
    # not tell what there is to do.
    file(GLOB sources "${FOLDER}/*.js" "${FOLDER}/*.css")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${FOLDER}")
    foreach(name IN LISTS PAGE_BUNDLES)
      set(others ${PAGE_BUNDLES}) # what a script imports of these is asked for when it runs
      list(REMOVE_ITEM others "${name}")
      list(TRANSFORM others PREPEND "--external:./")
      set(bundle "${CMAKE_CURRENT_BINARY_DIR}/page/${name}")
      add_custom_command(OUTPUT "${bundle}"
        COMMAND "${TWILL_ESBUILD}" "${FOLDER}/${name}" "--outfile=${bundle}" --bundle --minify --format=esm --target=es2022
                --charset=utf8 --log-level=warning ${others}
        DEPENDS ${sources} VERBATIM)
      list(APPEND files "${bundle}")
    endforeach()
    set(out "${CMAKE_CURRENT_BINARY_DIR}/page_files.cpp")
    add_custom_command(OUTPUT "${out}"
      COMMAND "${CMAKE_COMMAND}" "-DOUT=${out}" "-DFILES=${files}" -P "${TWILL_EMBED_SCRIPT}"
      DEPENDS ${files} "${TWILL_EMBED_SCRIPT}" VERBATIM)
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
set(type_md "text/plain; charset=utf-8")

set(arrays "")
set(rows "")
set(number 0)
foreach(path IN LISTS FILES)
  get_filename_component(name "${path}" NAME)
  file(READ "${path}" hex HEX)
  file(SHA256 "${path}" hash)
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
