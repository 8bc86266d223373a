// detokenizer: turns the ids of one sequence into text as they come, in whole characters.
//
// Each sequence has its own detokenizer, which one thread may use at a time. The tokenizer must
// outlive the detokenizer. Bytes that cannot begin or continue a character become U+FFFD as soon as
// that is certain; the bytes of an unfinished character are held until its last byte has come. The
// space that some vocabularies put in front of a text is dropped.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/text/tokenizer.hpp"

namespace twill::models {

class detokenizer {
public:
  /// `at_start` is false if the ids continue a text; the first word then keeps the space in front
  /// of it. `shown` are special tokens whose text is kept even if `skip_special` is true, such as
  /// <tool_call>.
  detokenizer(const tokenizer& source, bool skip_special, bool at_start = true,
              std::vector<token_id> shown = {})
      : source_(&source), shown_(std::move(shown)), skip_special_(skip_special),
        at_start_(at_start) {}

  /// The text that `id` completes, which is valid UTF-8 and may be empty.
  std::string push(token_id id);
  /// The unfinished rest, as U+FFFD; to be called once at the end.
  std::string flush();

private:
  const tokenizer* source_;
  std::vector<token_id> shown_;
  std::string pending_; ///< an unfinished character, at most 3 bytes
  bool skip_special_;
  bool at_start_; ///< true until text has come out
};

/// Appends the text of `bytes` to `out`. Each invalid sequence of bytes becomes one U+FFFD; such a
/// sequence ends where Python and the WHATWG decoder end it. The bytes of an unfinished last
/// character stay in `bytes`.
void take_utf8(std::string& bytes, std::string& out);

/// True when `text` is well-formed UTF-8 (no surrogates, no overlong forms).
bool is_utf8(std::string_view text);

} // namespace twill::models
