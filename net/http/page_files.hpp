// page_files: the files of net/page/, which the build embeds into the program. Each script or style
// is one bundle that includes everything it imports (tools/cmake/twill_embed.cmake generates the
// definition). The files are constant, and any thread may read them.
#pragma once

#include <span>
#include <string_view>

namespace twill::net {

struct page_file {
  std::string_view name; ///< file name in net/page/, such as "chat.js"
  std::string_view content_type;
  std::string_view etag; ///< quoted; differs whenever `bytes` differ
  std::string_view bytes;
};

std::span<const page_file> page_files();

} // namespace twill::net
