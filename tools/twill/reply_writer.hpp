// reply_writer: shows a reply while it comes. On a terminal it is made harmless and wrapped at the
// width that the terminal has at the time; to a file or pipe it goes unchanged.
#pragma once

#include <string_view>

#include "tools/common/terminal.hpp"
#include "tools/twill/word_wrap.hpp"

namespace twill::tools {

class reply_writer {
public:
  void add(std::string_view text);
  bool begun() const { return begun_; }
  /// The reply is over: shows what was kept back, and ends the line.
  void end();

private:
  const bool wraps_ = is_terminal(stream::out);
  word_wrap wrap_;
  bool begun_ = false;
};

} // namespace twill::tools
