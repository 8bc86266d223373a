#include "tools/twill-bench/engine/conversation.hpp"

#include <cstdint>
#include <utility>

namespace twill::bench {

prompt conversation::ask(const prompt& turn) {
  asked_.ids.insert(asked_.ids.end(), turn.ids.begin(), turn.ids.end());
  asked_.text = turn.text;
  asked_.input_tokens += turn.input_tokens;
  asked_.output_tokens = turn.output_tokens;
  return asked_;
}

void conversation::answered(const record& reply) {
  if (asked_.ids.empty()) {
    asked_.earlier.push_back({std::move(asked_.text), reply.text});
    asked_.input_tokens += reply.output_tokens;
    return;
  }
  asked_.ids.insert(asked_.ids.end(), reply.ids.begin(), reply.ids.end());
  asked_.input_tokens += static_cast<std::int32_t>(reply.ids.size());
}

std::vector<std::size_t> conversation_starts(const std::vector<prompt>& prompts) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    if (i == 0 || !prompts[i].follows) out.push_back(i);
  return out;
}

} // namespace twill::bench
