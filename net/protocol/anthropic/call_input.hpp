// call_input: the arguments of one tool call, a JSON text that comes in pieces, for clients that
// read each piece of it at once. One thread at a time.
//
// A model that is not held by a grammar may write what is no JSON, and max_tokens may cut what is.
// Anthropic's clients parse the pieces that they have, and fail on a text that no JSON begins with.
// So only a beginning of a JSON object is handed out, and line ends within strings, which models
// forget to escape, are escaped.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace twill::net {

class call_input {
public:
  /// More of the text; returns what may be handed out of it. All that was handed out begins a JSON
  /// object, or is one. Numbers and words are handed out once they have ended.
  std::string push(std::string_view text);

  /// Whether a whole object was handed out.
  bool whole() const noexcept { return state_ == state::over; }

  /// A JSON object of the members that are complete in `handed_out`, which is all that push() gave.
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
  bool in_key_ = false;    ///< the string is a member's name
  std::string open_;       ///< brackets that are open
  std::string held_;       ///< an unfinished number, word or escape sequence
  std::size_t handed_ = 0; ///< bytes that earlier calls have handed out
  std::size_t safe_ = 0;   ///< up to here values are complete,
  std::string safe_open_;  ///< with these brackets open
};

} // namespace twill::net
