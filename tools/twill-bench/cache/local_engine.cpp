#include "tools/twill-bench/cache/local_engine.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace twill::bench {
namespace {

using clock = std::chrono::steady_clock;

/// Requests under way, as their callbacks see them.
struct board {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<local_engine::answer> answers;
  std::size_t n_over = 0;
  std::string error;
};

} // namespace

local_engine::local_engine(const config::options& options)
    : engine_(actors::start_engine(options)) {
  const auto& port = engine_->port();
  while (port.state() != actors::engine_state::ready) {
    if (port.state() == actors::engine_state::failed) throw std::runtime_error(port.state_detail());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::vector<local_engine::answer>
local_engine::ask(const std::vector<std::vector<std::int32_t>>& prompts,
                  std::int32_t output_tokens) {
  const auto shared = std::make_shared<board>();
  shared->answers.resize(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    actors::request asked;
    asked.prompt = actors::token_prompt(prompts[i]);
    asked.sampling.max_tokens = output_tokens;
    asked.sampling.temperature = 0;
    asked.sampling.ignore_eos = true;
    const auto began = clock::now();
    engine_->port().submit(std::move(asked), [shared, i, began](const actors::event& e) {
      const std::lock_guard lock(shared->mutex);
      answer& own = shared->answers[i];
      if (!e.tokens.empty() && own.first_token_s == 0)
        own.first_token_s = std::chrono::duration<double>(clock::now() - began).count();
      if (e.error) shared->error = e.error->message;
      if (!e.last) return;
      own.cached_tokens = e.use.cached_tokens;
      ++shared->n_over;
      shared->changed.notify_all();
    });
  }
  std::unique_lock lock(shared->mutex);
  shared->changed.wait(lock, [&] { return shared->n_over == prompts.size(); });
  if (!shared->error.empty()) throw std::runtime_error(shared->error);
  return shared->answers;
}

std::vector<std::int32_t> tokens_of(std::int32_t conversation, std::int32_t n_tokens) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < n_tokens; ++i)
    ids.push_back(1000 + (conversation * 7919 + i * 31 + i / 7 * conversation) % 20000);
  return ids;
}

} // namespace twill::bench
