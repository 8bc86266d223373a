#include "tools/common/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace twill::tools {

bool is_terminal(stream s) {
  return ::isatty(s == stream::out ? STDOUT_FILENO : STDERR_FILENO) == 1;
}

std::size_t columns_of(stream s) {
  winsize size{};
  const int fd = s == stream::out ? STDOUT_FILENO : STDERR_FILENO;
  return is_terminal(s) && ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool has_colour(stream s) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return is_terminal(s) && (no_colour == nullptr || *no_colour == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::string painted(stream s, ink colour, std::string_view text) {
  if (!has_colour(s)) return std::string(text);
  const char* code = "";
  switch (colour) {
  case ink::dim:
    code = "\x1b[2m";
    break;
  case ink::bold:
    code = "\x1b[1m";
    break;
  case ink::red:
    code = "\x1b[31m";
    break;
  case ink::green:
    code = "\x1b[32m";
    break;
  }
  return code + std::string(text) + "\x1b[0m";
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // U+0080 to U+009F are control characters too, two bytes each in UTF-8: U+009B has the effect
    // of ESC [.
    const bool upper_control = byte == 0xc2 && next >= 0x80 && next <= 0x9f;
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f || upper_control)
      out += "\xef\xbf\xbd";
    else
      out += text[i];
    if (upper_control) ++i;
  }
  return out;
}

void write_out(std::string_view text) {
  const std::string shown = is_terminal(stream::out) ? printable(text) : std::string(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  std::fflush(stdout);
}

} // namespace twill::tools
