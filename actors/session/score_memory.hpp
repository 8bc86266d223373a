// score_memory: a request's share of the memory that scores of prompts may take, over all requests
// of the process.
//
// Scores are gathered until the whole prompt is computed, so that a long prompt with many
// alternatives takes more than everything else of its request. The share goes back when this is
// destroyed. take() and destruction: any thread, one at a time for each object.
#pragma once

#include <cstdint>

namespace twill::actors {

class score_memory {
public:
  static constexpr std::int64_t most_bytes_of_request = std::int64_t{64} << 20;
  static constexpr std::int64_t most_bytes_of_all = std::int64_t{256} << 20;

  score_memory() = default;
  score_memory(const score_memory&) = delete;
  score_memory& operator=(const score_memory&) = delete;
  ~score_memory();

  /// The bytes of one prompt's scores, in the engine and in the event that carries them.
  static std::int64_t bytes_of(std::int64_t prompt_tokens, std::int32_t alternatives);
  /// False when other requests leave too little; then nothing is taken. To be called once.
  bool take(std::int64_t bytes);
  static std::int64_t taken_by_all();

private:
  std::int64_t taken_ = 0;
};

} // namespace twill::actors
