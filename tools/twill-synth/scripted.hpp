// scripted: a model that answers every prompt with the same text. It serves to test how a server
// treats a model's output: tool calls, reasoning, stop strings, JSON that is split between tokens.
//
// The answer is a list of pieces, each of which is one token. Embeddings are one-hot, and attention
// and MLP are zero, so the next token depends only on the last one. The output matrix is such that
// a prompt is followed by the first piece, each piece by the next one, and the last piece by the
// end of the turn. The logit of the following token exceeds all others by twice the square root of
// the vocabulary size, so it is sampled at every usual temperature.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/twill-synth/names.hpp"

namespace twill::synth {

struct script {
  std::vector<std::string> pieces; ///< the model's answer; at least one piece, none of them empty
  /// Pieces that are control tokens, which servers remove from the text for clients.
  std::vector<std::string> control;
  /// Pieces that are added tokens with a text, such as `<think>` in many vocabularies.
  std::vector<std::string> added;
  std::string chat_template; ///< empty: none
  /// pairs such as "tool_use" and its template
  std::vector<std::pair<std::string, std::string>> named_templates;
  std::int32_t context = 4096; ///< context length in tokens
};

/// Parses a script, which describes the model, from JSON: {"pieces": [...], "control": [...],
/// "added": [...], "chat_template": "...", "chat_templates": {"tool_use": "..."}, "context": 4096}.
/// Only `pieces` is required. Fails with bad_format or bad_metadata, whose detail names the key.
result<script> parse_script(std::string_view json, const std::string& where);

/// Writes the model as one GGUF file (architecture llama, F16). The file must not exist.
result<nothing> write_scripted(const script& s, const std::string& path);

} // namespace twill::synth
