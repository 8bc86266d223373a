#include "tools/twill-bench/plan/request_load.hpp"

#include <cstddef>
#include <utility>

namespace twill::bench {

std::int32_t blocks_for(const load_settings& s) {
  const std::int32_t of_one = (s.prompt_tokens + s.output_tokens) / load_block_tokens + 1;
  return s.running * (s.few_blocks ? of_one - 4 : 2 * of_one);
}

actors::batcher_limits limits_for(const load_settings& s) {
  actors::batcher_limits limits;
  const std::int32_t most = s.few_blocks ? 2 * s.running : s.running;
  limits.plan = {most + 4096, most, load_block_tokens, s.prefix_cache, 4096};
  limits.max_queued = s.queued + s.running;
  limits.total_blocks = blocks_for(s);
  return limits;
}

request_maker::request_maker(const load_settings& settings)
    : prompt_tokens_(settings.prompt_tokens), output_tokens_(settings.output_tokens),
      sampling_(std::make_shared<const config::sampling_params>()),
      stop_ids_(std::make_shared<const std::vector<std::int32_t>>()) {}

actors::submit_prompt request_maker::next() {
  const auto begin = static_cast<std::int32_t>(made_ * 7919 % 1'000'000);
  std::vector<std::int32_t> prompt(static_cast<std::size_t>(prompt_tokens_));
  for (std::size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = begin + static_cast<std::int32_t>(i);
  actors::submit_prompt order;
  order.request = ++made_;
  order.spec.prompt = std::make_shared<const std::vector<std::int32_t>>(std::move(prompt));
  order.spec.sampling = sampling_;
  order.spec.stop_ids = stop_ids_;
  // The lengths differ, so that requests do not all end at once.
  order.spec.max_new =
      output_tokens_ / 2 +
      static_cast<std::int32_t>(made_ * 31 % static_cast<std::uint64_t>(output_tokens_));
  return order;
}

actors::step_result result_maker::result_of(const actors::step_plan& plan) {
  actors::step_result result;
  result.generation = plan.generation;
  result.number = plan.number;
  result.seconds = 0.01;
  for (actors::sequence_id id : plan.closes)
    outputs_.erase(id);
  for (const auto& opened : plan.opens)
    outputs_[opened.id] = opened.spec.max_new - static_cast<std::int32_t>(opened.output.size());
  for (const auto& row : plan.rows) {
    if (!row.draws || outputs_[row.id]-- <= 0) continue;
    actors::drawn_token drawn;
    drawn.id = row.id;
    drawn.token = static_cast<std::int32_t>(row.first_position);
    result.drawn.push_back(drawn);
  }
  return result;
}

} // namespace twill::bench
