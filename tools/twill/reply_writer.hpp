// reply_writer: shows a reply while it arrives. On a terminal, control characters are replaced and
// the text is wrapped at the terminal's current width; to a file or pipe the text is written
// unchanged.
#pragma once

#include <string_view>

#include "tools/common/terminal.hpp"
#include "tools/twill/word_wrap.hpp"

namespace twill::tools {

class reply_writer {
public:
  void add(std::string_view text);
  bool begun() const { return begun_; }
  /// Ends the reply: shows the text that was held back for wrapping, and ends the line.
  void end();

private:
  const bool wraps_ = is_terminal(stream::out);
  word_wrap wrap_;
  bool begun_ = false;
};

} // namespace twill::tools
