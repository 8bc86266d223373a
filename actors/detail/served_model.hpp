// served_model: the properties of the served model that the session actors and the engine_port
// need.
//
// Immutable once made and shared by std::shared_ptr, so any thread may read it. It outlives
// restarts of the executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "models/model.hpp"
#include "models/text/tool_calls/tool_format.hpp"

namespace twill::actors {

class grammar_service; // in actors/structured/grammar_service.hpp

/// The format in which the model writes tool calls and reasoning, according to its chat template.
struct answer_format {
  std::optional<models::tool_calls::tool_format> calls;
  std::optional<models::tool_calls::reasoning_tags> reasoning;
  std::int32_t reasoning_begin_token = -1; ///< the token of the opening reasoning tag; -1: none
  // Control tokens whose text marks calls and reasoning.
  std::vector<std::int32_t> call_markers, reasoning_markers;

  std::vector<std::int32_t> markers() const {
    auto all = call_markers;
    all.insert(all.end(), reasoning_markers.begin(), reasoning_markers.end());
    return all;
  }
};

struct served_model {
  std::shared_ptr<const models::model> files;
  std::string id;
  std::int64_t created_unix_s = 0;
  std::int32_t max_context_tokens = 0; ///< prompt + output of one sequence
  std::int64_t kv_tokens = 0;          ///< positions that the KV cache holds
  /// Longer text cannot fit the context, whatever its tokens are, and is refused before tokenizing.
  std::size_t max_prompt_bytes = 0;
  answer_format answers; ///< answer format for prompts of the default template, and for raw texts
  /// answer formats for prompts of files->other_chats, in the same order
  std::vector<answer_format> other_answers;
  /// the part of event::continuity that does not depend on the request
  std::uint64_t continuity = 0;
  std::shared_ptr<grammar_service> grammars; ///< any thread may use it; null in tests without it
};
using served_model_ptr = std::shared_ptr<const served_model>;

/// The text side of a model: all but `kv_tokens` and `grammars`.
std::shared_ptr<served_model> make_served_text(const config::model_options& options,
                                               std::shared_ptr<const models::model> files,
                                               std::int32_t max_context_tokens);

} // namespace twill::actors
