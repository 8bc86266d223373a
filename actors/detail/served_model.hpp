// served_model: what sessions and the port need of the model that is being served.
//
// Immutable once made and shared by handle, so any thread may read it. It outlives restarts of the
// executor.
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

/// How the model writes tool calls and reasoning, as its chat template tells.
struct answer_format {
  std::optional<models::tool_calls::tool_format> calls;
  std::optional<models::tool_calls::reasoning_tags> reasoning;
  std::int32_t reasoning_begin_token = -1; ///< the token that is the opening tag; -1: there is none
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
  answer_format answers;                     ///< to prompts of the default template, and to texts
  std::vector<answer_format> other_answers;  ///< to prompts of files->other_chats, in their order
  std::uint64_t continuity = 0;              ///< of event::continuity, what is not the request's
  std::shared_ptr<grammar_service> grammars; ///< any thread may use it; null in tests without it
};
using served_model_ptr = std::shared_ptr<const served_model>;

/// The text side of a model: all but `kv_tokens` and `grammars`.
std::shared_ptr<served_model> make_served_text(const config::model_options& options,
                                               std::shared_ptr<const models::model> files,
                                               std::int32_t max_context_tokens);

} // namespace twill::actors
