// page_files: the pages of net/page/, embedded into the program when it is built: a script or style
// of a page is one file with all that it imports (see tools/cmake/twill_embed.cmake, which writes
// the definition). Immutable, any thread.
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
