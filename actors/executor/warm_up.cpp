#include "actors/executor/warm_up.hpp"

#include <numeric>

namespace twill::actors {

executor_step warm_up_step(std::int32_t rows, std::int32_t block_tokens,
                           const config::sampling_params& params) {
  executor_step step;
  step.tokens.assign(static_cast<std::size_t>(rows), 0);
  step.positions.resize(static_cast<std::size_t>(rows));
  std::iota(step.positions.begin(), step.positions.end(), 0);
  step.first_token = {0, rows};
  step.kv_lengths = {rows};
  step.prompt_lengths = {rows};
  step.max_blocks = (rows + block_tokens - 1) / block_tokens;
  step.block_table.resize(static_cast<std::size_t>(step.max_blocks));
  std::iota(step.block_table.begin(), step.block_table.end(), 0);
  step.logit_rows = {rows - 1};
  step.draws.push_back({.params = &params});
  return step;
}

} // namespace twill::actors
