# CPack's settings. tools/package/deb configures with the prefix /usr and runs cpack.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME twill)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
# Who publishes a package is whoever makes it: tools/package/deb says so.
set(CPACK_PACKAGE_CONTACT "nobody <nobody@localhost>" CACHE STRING "Who publishes the package")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "server of large language models over HTTP and WebSocket")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"twilld serves large language models to many clients at once. It streams
tokens over HTTP and WebSocket as clients of OpenAI and Anthropic expect it,
with a page to chat on, reads GGUF, safetensors, PyTorch, GPTQ and AWQ
checkpoints, and runs models that are larger than the memory of their device.
.
The package also has twill, the client, twill-bench, a load generator for
this and other servers, and twill-synth, which writes random checkpoints.")
set(CPACK_SET_DESTDIR ON) # /etc is not below /usr
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/../package")
set(CPACK_OUTPUT_CONFIG_FILE "${PROJECT_BINARY_DIR}/CPackConfig.cmake")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE "1" CACHE STRING "The Debian revision of the package")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser")
# `twill default-model` fetches by pip; a load test needs none of them.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-pip, systemd")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(debian "${CMAKE_CURRENT_LIST_DIR}/debian")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  "${debian}/conffiles;${debian}/postinst;${debian}/prerm;${debian}/postrm")
include(CPack)
