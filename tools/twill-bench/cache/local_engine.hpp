// local_engine: an engine in this process with prompts of token ids, for measurements of cached KV.
//
// One thread. Fails by std::runtime_error, which says what the engine said.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/engine.hpp"
#include "config/options.hpp"

namespace twill::bench {

class local_engine {
public:
  /// Returns once the model is ready.
  explicit local_engine(const config::options& options);

  struct answer {
    double first_token_s = 0; ///< from the submission
    std::int32_t cached_tokens = 0;
  };
  /// Submits all prompts at once, and returns when all have ended. Each draws `output_tokens`.
  std::vector<answer> ask(const std::vector<std::vector<std::int32_t>>& prompts,
                          std::int32_t output_tokens);
  actors::engine_stats stats() const { return engine_->port().stats(); }

private:
  std::unique_ptr<actors::engine> engine_;
};

/// Ids that differ from those of every other conversation.
std::vector<std::int32_t> tokens_of(std::int32_t conversation, std::int32_t n_tokens);

} // namespace twill::bench
