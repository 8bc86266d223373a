// score_memory: a request's share of the memory for scores (log-probabilities) of prompts, which is
// limited for all requests of the process together.
//
// Scores are collected until the whole prompt is computed, so a long prompt with many alternatives
// takes more memory than everything else of its request. The destructor gives the share back.
// take() and the destructor: any thread, one at a time for each object.
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

  /// The bytes that the scores of one prompt take, in the engine and in the event that delivers
  /// them together.
  static std::int64_t bytes_of(std::int64_t prompt_tokens, std::int32_t alternatives);
  /// Takes `bytes`. Returns false, and takes nothing, if other requests leave too little. May be
  /// called once.
  bool take(std::int64_t bytes);
  static std::int64_t taken_by_all();

private:
  std::int64_t taken_ = 0;
};

} // namespace twill::actors
