// scripted: a model that answers every prompt with the same text, for tests of what a server makes
// of a model's output: tool calls, reasoning, stop strings, JSON that is split between tokens.
//
// The answer is a list of pieces, one token each. Embeddings are one-hot, attention and MLP are
// zero, and the row of each piece in the output matrix answers to the embedding of the piece before
// it, so that the next token follows from the last one alone: a prompt is followed by the first
// piece, the last piece by the end of the turn. The logits of that token are larger than all others
// by twice the square root of the vocabulary's size, so that sampling draws it at every temperature
// that is usual.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/twill-synth/names.hpp"

namespace twill::synth {

struct script {
  std::vector<std::string> pieces; ///< what the model writes; at least one, none of them empty
  /// Pieces that are control tokens, which a server removes from the text that clients get.
  std::vector<std::string> control;
  /// Pieces that are added tokens with a text of their own, as `<think>` is in many vocabularies.
  std::vector<std::string> added;
  std::string chat_template;                                        ///< empty: none
  std::vector<std::pair<std::string, std::string>> named_templates; ///< "tool_use" and its text
  std::int32_t context = 4096;                                      ///< tokens
};

/// Reads a script from JSON: {"pieces": [...], "control": [...], "added": [...],
/// "chat_template": "...", "chat_templates": {"tool_use": "..."}, "context": 4096}, of which only
/// `pieces` is required. Fails with bad_format or bad_metadata, which name the key.
result<script> parse_script(std::string_view json, const std::string& where);

/// Writes the model as one GGUF file (architecture llama, F16), which must not exist yet.
result<nothing> write_scripted(const script& s, const std::string& path);

} // namespace twill::synth
