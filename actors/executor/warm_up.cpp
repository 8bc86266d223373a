#include "actors/executor/warm_up.hpp"

#include <numeric>

namespace twill::actors {

executor_step warm_up_step(std::int32_t sequences, std::int32_t rows, std::int32_t block_tokens,
                           const config::sampling_params& params) {
  executor_step step;
  step.max_blocks = (rows + block_tokens - 1) / block_tokens;
  step.block_table.resize(static_cast<std::size_t>(sequences * step.max_blocks));
  std::iota(step.block_table.begin(), step.block_table.end(), 0);
  step.first_token = {0};
  for (std::int32_t s = 0; s < sequences; ++s) {
    for (std::int32_t position = 0; position < rows; ++position) {
      step.tokens.push_back(0);
      step.positions.push_back(position);
    }
    step.first_token.push_back((s + 1) * rows);
    step.kv_lengths.push_back(rows);
    step.prompt_lengths.push_back(rows);
    step.logit_rows.push_back((s + 1) * rows - 1);
    step.draws.push_back({.params = &params});
  }
  return step;
}

} // namespace twill::actors
