// chat_template: a model's Jinja template, parsed once, rendered per request in a sandbox.
//
// Immutable after parse(); any thread may render. The sandbox has no I/O and bounds output size,
// work and depth, so that a hostile template ends in an error. Text that came from messages (not
// from the template itself) is reported as literal ranges: the tokenizer recognises no control
// tokens in these ranges.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "config/base/value.hpp"
#include "models/errc.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::models {

/// The cut mark (U+FDD0, a noncharacter). Where a template prints the mark, the tokenizer encodes
/// the text after it separately: the mark is removed from the text, and an empty range is added to
/// rendered_prompt::literal at its place. In a message of the request the mark is plain text.
inline constexpr std::string_view cut_mark = "\xEF\xB7\x90";

struct template_input {
  value messages; ///< list of {role, content, ...}
  value tools;    ///< a list, or null
  bool add_generation_prompt = true;
  value_object extra;          ///< chat_template_kwargs: more top-level names
  std::int64_t now_unix_s = 0; ///< the time that strftime_now() formats; 0: the time of rendering
};

struct rendered_prompt {
  std::string text;
  byte_ranges literal; ///< parts that came from the request, and the places of cut marks
};

/// Cuts off everything after `content`, the text of the prompt's last message, so that the model
/// continues that text. White space at either end of `content` may be missing in the prompt, since
/// templates trim it. Returns false and leaves the prompt unchanged if another text of the request
/// comes after `content` in the prompt, or if `content` is not found.
bool cut_after(std::string_view content, rendered_prompt& prompt);

class chat_template {
public:
  /// `bos_token` and `eos_token` are what the template may print under these names.
  static result<std::shared_ptr<const chat_template>>
  parse(std::string_view source, std::string bos_token, std::string eos_token);
  ~chat_template();

  result<rendered_prompt> render(const template_input& input) const;
  /// Messages as this template expects them (models/text/message_form.hpp).
  value fit(const value& messages, const std::string& tool_text = {}) const;
  const std::string& source() const;

private:
  chat_template();
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// A template besides the default one.
struct named_template {
  std::string name; ///< tool_use: for requests with tools; others are for requests that name them
  std::shared_ptr<const chat_template> chat;
};

} // namespace twill::models
