#include "tools/twill/message_reader.hpp"

#include <string_view>
#include <utility>

#include "tools/common/terminal.hpp"
#include "tools/twill/interrupt.hpp"

namespace twill::tools {
namespace {

constexpr std::string_view block_mark = R"(""")";
constexpr const char* continuation_prompt = ". ";

} // namespace

std::optional<user_message> message_reader::next() {
  for (;;) {
    user_message message;
    const auto how = read(message);
    if (how == outcome::over) return std::nullopt;
    if (how == outcome::abandoned) {
      write_out("\n");
      clear_interrupts();
      continue;
    }
    auto& text = message.text;
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    if (text.empty()) continue;
    lines_.remember(text);
    if (message.command && text.starts_with("//")) {
      message.command = false;
      text.erase(0, 1);
    }
    return message;
  }
}

message_reader::outcome message_reader::read(user_message& message) {
  auto line = lines_.read("> ");
  if (line.kind == line_read_kind::over) return outcome::over;
  if (line.kind == line_read_kind::abandoned) return outcome::abandoned;
  message.text = std::move(line.text);
  // A \ or """ in pasted text is part of the text.
  if (line.pasted && message.text.find('\n') != message.text.npos) return outcome::whole;
  if (message.text.starts_with(block_mark)) return read_block(message.text);
  if (!lines_.at_terminal())
    return outcome::whole; // scripts have no commands: every line goes to
                           // the model
  const auto how = read_continuation(message.text);
  message.command = message.text.starts_with('/') && message.text.find('\n') == message.text.npos;
  return how;
}

message_reader::outcome message_reader::read_block(std::string& message) {
  message.erase(0, block_mark.size());
  while (!message.ends_with(block_mark)) {
    auto more = lines_.read(continuation_prompt);
    if (more.kind == line_read_kind::line) {
      message += "\n" + more.text;
      continue;
    }
    if (more.kind == line_read_kind::abandoned || interrupts() > 0) return outcome::abandoned;
    if (lines_.at_terminal()) return outcome::over;
    message += block_mark; // the end of a script's input ends its block
  }
  message.resize(message.size() - block_mark.size());
  if (message.starts_with('\n')) message.erase(0, 1);
  return outcome::whole;
}

message_reader::outcome message_reader::read_continuation(std::string& message) {
  while (message.ends_with('\\')) {
    auto more = lines_.read(continuation_prompt);
    if (more.kind != line_read_kind::line)
      return more.kind == line_read_kind::abandoned || interrupts() > 0 ? outcome::abandoned
                                                                        : outcome::over;
    message.back() = '\n';
    message += more.text;
  }
  return outcome::whole;
}

} // namespace twill::tools
