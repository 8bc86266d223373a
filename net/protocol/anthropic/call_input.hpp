// call_input: filters the arguments of one tool call, a JSON text that arrives in pieces, so that
// clients may parse each piece as it arrives. Not thread-safe.
//
// Without a grammar, a model may write arguments that are not JSON, and `max_tokens` may cut valid
// JSON short. Anthropic's clients parse the incomplete text after each piece, and fail if it is not
// the beginning of valid JSON. Therefore push() returns only text that continues the beginning of a
// JSON object. It also escapes line ends within strings, since models often forget to escape them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace twill::net {

class call_input {
public:
  /// Adds `text` and returns the part that may be sent to the client. All text returned so far,
  /// taken together, is a JSON object or the beginning of one. A number, `true`, `false` or `null`
  /// is returned only after it has ended.
  std::string push(std::string_view text);

  /// True if a complete JSON object has been returned.
  bool whole() const noexcept { return state_ == state::over; }

  /// Returns a JSON object of the members that are complete in `handed_out`. `handed_out` must be
  /// all text that push() has returned.
  std::string closed(std::string_view handed_out) const;

private:
  enum class state {
    value,
    first_value,
    first_key,
    key,
    colon,
    after_value,
    string,
    escape,
    scalar,
    over,
    broken
  };

  void take(char c, std::string& out);
  void take_value(char c, std::string& out);
  void take_string(char c, std::string& out);
  void take_escape(char c, std::string& out);
  void take_after_value(char c, std::string& out);
  void end_scalar(std::string& out);
  void open(char bracket, std::string& out);
  void end_value(const std::string& out);

  state state_ = state::value;
  bool in_key_ = false;    ///< the open string is the name of a member
  std::string open_;       ///< open brackets, outermost first
  std::string held_;       ///< an unfinished number, word or escape sequence
  std::size_t handed_ = 0; ///< bytes that earlier calls of push() returned
  std::size_t safe_ = 0;   ///< the returned text is complete values up to this offset
  std::string safe_open_;  ///< brackets that are open at the offset `safe_`
};

} // namespace twill::net
