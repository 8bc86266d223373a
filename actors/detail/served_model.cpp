#include "actors/detail/served_model.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/session/output_plan.hpp"

namespace twill::actors {

std::shared_ptr<served_model> make_served_text(const config::model_options& options,
                                               std::shared_ptr<const models::model> files,
                                               std::int32_t max_context_tokens) {
  auto served = std::make_shared<served_model>();
  served->id = options.name.empty() ? files->name : options.name;
  served->created_unix_s = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  served->max_context_tokens = max_context_tokens;
  std::size_t longest = 1;
  for (std::int32_t id = 0; id < files->text->vocab_size(); ++id)
    longest = std::max(longest, files->text->token_bytes(id, true).size());
  served->max_prompt_bytes = longest * static_cast<std::size_t>(max_context_tokens);
  served->answers = find_answer_format(*files->text, files->chat.get(), options.tool_format);
  for (const auto& other : files->other_chats)
    served->other_answers.push_back(
        find_answer_format(*files->text, other.chat.get(), options.tool_format));
  served->files = std::move(files);
  return served;
}

} // namespace twill::actors
