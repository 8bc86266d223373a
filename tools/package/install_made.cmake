# Part of `cmake --install`: makes and installs what depends on the programs or on where they go. Needs the
# variables that CMakeLists.txt sets; DESTDIR is honoured by file(INSTALL).
cmake_minimum_required(VERSION 3.22)
file(REMOVE_RECURSE "${made}")
file(MAKE_DIRECTORY "${made}")

# Below /usr the configuration is in /etc, and data in /var; elsewhere all are below the prefix.
set(prefix "${CMAKE_INSTALL_PREFIX}")
set(etc "${prefix}/etc")
set(zsh site-functions)
if(prefix STREQUAL "/usr")
  set(etc "/etc")
  set(zsh vendor-completions) # site-functions is the administrator's there
endif()

function(install_to folder)
  file(INSTALL ${ARGN} DESTINATION "${folder}")
endfunction()

# The output of a program as a file; `name` is its path below `made`.
function(write_page name)
  execute_process(COMMAND ${ARGN} OUTPUT_FILE "${made}/${name}" RESULT_VARIABLE status)
  file(SIZE "${made}/${name}" bytes)
  if(NOT status EQUAL 0 OR bytes EQUAL 0)
    message(FATAL_ERROR "${ARGN} must write a page, but ended with status ${status}")
  endif()
endfunction()

# As manuals and changelogs are installed: the time and the name of the file stay out, so that two builds agree.
function(compress name)
  execute_process(COMMAND gzip -9nf "${made}/${name}" RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "gzip -9nf ${made}/${name} ended with status ${status}")
  endif()
endfunction()

foreach(page twilld.8 twill.1 twill-bench.1 twill-synth.1)
  string(REGEX REPLACE "\\.([18])$" "" program "${page}")
  set(section "${CMAKE_MATCH_1}")
  write_page("${page}" "${programs}/${program}" --print-man)
  compress("${page}")
  install_to("${prefix}/${man}/man${section}" "${made}/${page}.gz")
  write_page("${program}" "${programs}/${program}" --print-completion bash)
  write_page("_${program}" "${programs}/${program}" --print-completion zsh)
  write_page("${program}.fish" "${programs}/${program}" --print-completion fish)
  install_to("${prefix}/${data}/bash-completion/completions" "${made}/${program}")
  install_to("${prefix}/${data}/zsh/${zsh}" "${made}/_${program}")
  install_to("${prefix}/${data}/fish/vendor_completions.d" "${made}/${program}.fish")
endforeach()

# The pages of the documentation; their links lead to where the pages are now.
execute_process(COMMAND "${python}" "${sources}/install_docs.py" "${tree}" "${made}/doc" RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "install_docs.py ended with status ${status}")
endif()
install_to("${prefix}/${doc}" "${made}/doc/")

configure_file("${changelog}" "${made}/changelog" COPYONLY)
compress(changelog)
install_to("${prefix}/${doc}" "${made}/changelog.gz")

if(DEFINED ENV{TWILL_DEBIAN_VERSION})
  file(WRITE "${made}/changelog.Debian" "twill ($ENV{TWILL_DEBIAN_VERSION}) unstable; urgency=medium

  * Packed by tools/package/deb; changelog.gz tells what changed.

 -- $ENV{TWILL_DEBIAN_MAINTAINER}  $ENV{TWILL_DEBIAN_DATE}
")
  compress(changelog.Debian)
  install_to("${prefix}/${doc}" "${made}/changelog.Debian.gz")
endif()

set(BINDIR "${prefix}/${bin}")
set(SYSCONFDIR "${etc}")
configure_file("${sources}/systemd/twilld.service.in" "${made}/twilld.service" @ONLY)
install_to("${prefix}/lib/systemd/system" "${made}/twilld.service" "${sources}/systemd/twilld.socket")
configure_file("${sources}/systemd/sysusers.conf" "${made}/sysusers/twill.conf" COPYONLY)
install_to("${prefix}/lib/sysusers.d" "${made}/sysusers/twill.conf")

# An administrator's changes outlive another install.
if(NOT EXISTS "$ENV{DESTDIR}${etc}/twill/twilld.toml")
  install_to("${etc}/twill" "${sources}/twilld.toml")
endif()
install_to("${etc}/twill/conf.d" "${sources}/conf.d/README")
