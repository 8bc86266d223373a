#include "tools/twill/reply_writer.hpp"

#include <string>

namespace twill::tools {

void reply_writer::add(std::string_view text) {
  begun_ = true;
  if (!wraps_) return write_out(text);
  std::string shown(text);
  std::erase(shown, '\r'); // carriage returns precede newlines in some texts; a lone one would hide
                           // the text of the line
  write_out(wrap_.add(printable(shown), columns_of(stream::out)));
}

void reply_writer::end() {
  write_out(wrap_.end() + "\n");
}

} // namespace twill::tools
