#include "actors/session/score_memory.hpp"

#include <atomic>

#include "actors/messages.hpp"
#include "actors/port/engine_port.hpp"

namespace twill::actors {

namespace {

std::atomic<std::int64_t> taken_bytes{0};

} // namespace

score_memory::~score_memory() {
  taken_bytes -= taken_;
}

std::int64_t score_memory::bytes_of(std::int64_t prompt_tokens, std::int32_t alternatives) {
  constexpr std::int64_t of_alternative =
      sizeof(token_logprob) + sizeof(decltype(prompt_score::top)::value_type);
  constexpr std::int64_t of_token = sizeof(token_output) + sizeof(prompt_score);
  return prompt_tokens * (of_token + of_alternative * alternatives);
}

bool score_memory::take(std::int64_t bytes) {
  if ((taken_bytes += bytes) > most_bytes_of_all) {
    taken_bytes -= bytes;
    return false;
  }
  taken_ = bytes;
  return true;
}

std::int64_t score_memory::taken_by_all() {
  return taken_bytes;
}

} // namespace twill::actors
