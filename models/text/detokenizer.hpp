// detokenizer: turns one sequence's ids into text as they come, never half a character.
//
// One per sequence, one thread at a time; the tokenizer must outlive it. Bytes that cannot begin or
// go on a character become U+FFFD as soon as that is certain; an unfinished character waits.
// The dummy space that some vocabularies put in front of a text is dropped at its start.
#pragma once

#include <string>

#include "models/text/tokenizer.hpp"

namespace twill::models {

class detokenizer {
public:
  /// `at_start` is false where the ids go on a text that ends in a word or a space: its next word
  /// keeps its space.
  detokenizer(const tokenizer& source, bool skip_special, bool at_start = true)
      : source_(&source), skip_special_(skip_special), at_start_(at_start) {}

  /// Text that `id` completes: valid UTF-8, perhaps empty.
  std::string push(token_id id);
  /// What is still pending, as U+FFFD; call once at the end.
  std::string flush();

private:
  const tokenizer* source_;
  std::string pending_; ///< an unfinished character, at most 3 bytes
  bool skip_special_;
  bool at_start_; ///< nothing has shown yet
};

/// Appends to `out` the valid text of `bytes` with invalid parts as U+FFFD (maximal subparts, one
/// each, as Python and the WHATWG decoder do); leaves an unfinished tail in `bytes`.
void take_utf8(std::string& bytes, std::string& out);

/// True when `text` is well-formed UTF-8 (no surrogates, no overlong forms).
bool is_utf8(std::string_view text);

} // namespace twill::models
