#include "tools/twill-bench/engine/sse_parser.hpp"

namespace twill::bench {
namespace {

/// The position of the first CR or LF. std::string_view::find is used instead of find_first_of,
/// which checks one character at a time.
std::size_t find_line_end(std::string_view bytes) {
  const std::size_t lf = bytes.find('\n');
  const std::size_t cr = bytes.substr(0, lf).find('\r');
  return cr == std::string_view::npos ? lf : cr;
}

} // namespace

void sse_parser::take_line(std::string_view line) {
  if (line.substr(0, 4) != "data") return;
  line.remove_prefix(4);
  if (!line.empty() && line.front() != ':') return;
  if (!line.empty()) line.remove_prefix(1);
  if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += line;
  has_data_ = true;
}

bool sse_parser::feed(std::string_view bytes,
                      const std::function<bool(std::string_view)>& on_event) {
  while (!bytes.empty()) {
    if (after_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
    const std::size_t end = find_line_end(bytes);
    if (end == std::string_view::npos) {
      line_ += bytes;
      break;
    }
    after_cr_ = bytes[end] == '\r';
    std::string_view line = bytes.substr(0, end);
    if (!line_.empty()) {
      line_ += line;
      line = line_;
    }
    const bool blank = line.empty();
    take_line(line);
    line_.clear();
    bytes.remove_prefix(end + 1);
    if (blank && has_data_) {
      const bool go_on = on_event(data_);
      data_.clear();
      has_data_ = false;
      if (!go_on) return true;
    }
  }
  return line_.size() + data_.size() <= max_event_bytes;
}

} // namespace twill::bench
