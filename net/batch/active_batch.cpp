#include "net/batch/active_batch.hpp"

#include <algorithm>

#include "config/base/log.hpp"

namespace twill::net {
namespace {

constexpr std::chrono::milliseconds retry_time{200};
constexpr std::chrono::milliseconds rate_retry_time{1000};
constexpr std::chrono::milliseconds longest_retry_time{10'000};

/// Returns whether an error says that the model cannot be served now, either because it could not
/// be loaded or because loading takes longer than a request may wait. How long this will last is
/// unknown.
bool is_without_model(const api_error& error) {
  const auto* code = std::get_if<actors::errc>(&error.code);
  // An error that names a field other than `model` concerns only the request, for example a grammar
  // that cannot be compiled.
  return code != nullptr && (error.param.empty() || error.param == "model") &&
         (*code == actors::errc::not_ready || *code == actors::errc::shutting_down ||
          *code == actors::errc::queue_timed_out);
}

bool is_rate_limited(const api_error& error) {
  const auto* code = std::get_if<actors::errc>(&error.code);
  return code != nullptr && *code == actors::errc::rate_limited;
}

} // namespace

/// If several requests are refused at the same time, the batch waits only once.
void batch_runner::active_batch::wait(const api_error& why) {
  const auto now = clock::now();
  if (not_before > now) return;
  if (!is_without_model(why)) {
    not_before = now + (is_rate_limited(why) ? rate_retry_time : retry_time);
    return;
  }
  if (waits_because != why.message)
    log::warn(id + " waits, at most until its completion window ends: " + why.message);
  waits_because = why.message;
  model_wait = std::clamp(2 * model_wait, retry_time, longest_retry_time);
  not_before = now + model_wait;
}

} // namespace twill::net
