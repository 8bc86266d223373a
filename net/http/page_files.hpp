// page_files: the files of net/page/, embedded into the program when it is built (see
// tools/cmake/twill_embed.cmake, which writes their definition). Immutable, any thread.
#pragma once

#include <span>
#include <string_view>

namespace twill::net {

struct page_file {
  std::string_view name; ///< as in net/page/, such as "chat.js"
  std::string_view content_type;
  std::string_view etag; ///< quoted; changes with the bytes
  std::string_view bytes;
};

std::span<const page_file> page_files();

} // namespace twill::net
