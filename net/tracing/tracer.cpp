#include "net/tracing/tracer.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "config/base/log.hpp"
#include "net/random_id.hpp"
#include "net/tracing/request_spans.hpp"

namespace twill::net {
namespace {

using namespace std::chrono_literals;

/// How long to wait for a reply of the collector.
constexpr std::chrono::milliseconds patience = 3s;
constexpr std::chrono::milliseconds last_patience = 1s;

std::uint64_t unix_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

std::optional<traced_sampling> small_copy(const config::sampling_params* from) {
  if (from == nullptr) return std::nullopt;
  traced_sampling copy;
  copy.max_tokens = from->max_tokens;
  copy.n = from->n;
  copy.top_k = from->top_k;
  copy.temperature = from->temperature;
  copy.top_p = from->top_p;
  copy.presence_penalty = from->presence_penalty;
  copy.frequency_penalty = from->frequency_penalty;
  copy.seed = from->seed;
  return copy;
}

/// Returns whether the collector may accept the batch later.
bool worth_another_try(int status) {
  return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

} // namespace

struct tracer::shared {
  shared(const config::tracing_options& options, post s, pace h)
      : send(std::move(s)), how(h), resource{{"service.name", options.service},
                                             {"service.version", std::string(TWILL_VERSION)},
                                             {"service.instance.id", make_id("twill-")}} {
    std::random_device source;
    std::seed_seq seed{source(), source(), source(), source()};
    random.seed(seed);
  }

  /// Used only by the tracer's thread:
  const post send;
  const pace how;
  const attributes resource;
  bool complained = false;

  mutable std::mutex mutex; ///< guards the members below
  std::condition_variable_any changed;
  std::mt19937_64 random;
  std::deque<traced_request> ended;
  std::uint64_t sent = 0, dropped = 0;

  template <class Id>
  Id fresh() {
    const std::lock_guard lock(mutex);
    Id id{};
    do
      for (std::size_t i = 0; i < id.size(); i += 8) {
        const std::uint64_t bits = random();
        for (std::size_t j = 0; j < 8; ++j)
          id[i + j] = static_cast<std::uint8_t>(bits >> 8 * j & 0xff);
      }
    while (id == Id{}); // an id of all zeros means that there is no id
    return id;
  }

  bool drawn(double share) {
    const std::lock_guard lock(mutex);
    return std::generate_canonical<double, std::numeric_limits<double>::digits>(random) < share;
  }

  /// Called on an engine thread.
  void take(traced_request one) {
    const std::lock_guard lock(mutex);
    if (ended.size() >= how.max_queued) {
      drop(one);
      return;
    }
    ended.push_back(std::move(one));
    if (ended.size() == 1 || ended.size() == how.max_batch) changed.notify_one();
  }

  void drop(const traced_request& one) {
    std::vector<span> lost;
    append_spans(
        one, [] { return span_id{}; }, lost);
    dropped += lost.size();
  }

  /// Returns the next batch as spans; an empty result means that the tracer stops and nothing is
  /// left to send.
  std::vector<span> gather(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    changed.wait(lock, stop, [this] { return !ended.empty(); });
    changed.wait_for(lock, stop, how.gather, [this] { return ended.size() >= how.max_batch; });
    const auto n = static_cast<std::ptrdiff_t>(std::min(ended.size(), how.max_batch));
    std::vector<traced_request> batch(std::make_move_iterator(ended.begin()),
                                      std::make_move_iterator(ended.begin() + n));
    ended.erase(ended.begin(), ended.begin() + n);
    lock.unlock();
    std::vector<span> spans;
    for (const auto& one : batch)
      append_spans(
          one, [this] { return fresh<span_id>(); }, spans);
    return spans;
  }

  void deliver(const std::vector<span>& spans, const std::stop_token& stop) {
    const auto body = export_request(resource, spans);
    auto pause = how.retry;
    for (int i = 1;; ++i) {
      const bool stopping = stop.stop_requested();
      const int status = send(body, stopping ? last_patience : patience);
      const bool taken = status >= 200 && status < 300;
      tell(status, taken);
      if (taken || stopping || i >= how.tries || !worth_another_try(status)) {
        const std::lock_guard lock(mutex);
        (taken ? sent : dropped) += spans.size();
        return;
      }
      std::unique_lock lock(mutex);
      changed.wait_for(lock, stop, pause, [] { return false; });
      pause *= 2;
    }
  }

  /// Logs one line when the collector stops accepting spans, and one when it accepts them again.
  void tell(int status, bool taken) {
    if (taken && std::exchange(complained, false))
      log::info("the collector at `tracing.endpoint` takes spans again");
    if (taken || std::exchange(complained, true)) return;
    log::warn("the collector at `tracing.endpoint` " +
              (status == 0 ? std::string("does not answer")
                           : "answers with status " + std::to_string(status)) +
              "; spans that it does not take in time are dropped");
  }

  void run(const std::stop_token& stop) {
    for (;;) {
      try {
        const auto spans = gather(stop);
        if (!spans.empty()) deliver(spans, stop);
        // Batches that are left at the end get one try each, until one of them fails.
        if (stop.stop_requested() && (spans.empty() || complained)) return;
      } catch (const std::exception& error) { // for example, no memory for a batch
        log::error(std::string("a batch of spans is lost: ") + error.what());
        if (stop.stop_requested()) return;
      }
    }
  }
};

tracer::tracer(const config::tracing_options& options, post send, pace how)
    : shared_(std::make_shared<shared>(options, std::move(send), how)), sample_(options.sample),
      thread_([own = shared_](const std::stop_token& stop) { own->run(stop); }) {}

tracer::~tracer() {
  thread_.request_stop();
  thread_.join();
}

void tracer::watch(actors::request& request, std::string_view traceparent) {
  const auto parent = read_trace_parent(traceparent);
  if (parent ? !parent->sampled : !shared_->drawn(sample_)) return;
  traced_request begun;
  begun.trace = parent ? parent->trace : shared_->fresh<trace_id>();
  begun.id = shared_->fresh<span_id>();
  if (parent) begun.parent = parent->span;
  begun.chat = std::holds_alternative<actors::chat_prompt>(request.prompt);
  request.on_end = [to = shared_, begun](const actors::request_summary& about) {
    try {
      auto whole = begun;
      whole.about = about;
      whole.about.sampling = nullptr;
      whole.sampling = small_copy(about.sampling);
      whole.end_unix_ns = unix_ns();
      to->take(std::move(whole));
    } catch (const std::exception&) { // no memory: only the trace is lost
      const std::lock_guard lock(to->mutex);
      to->dropped += 1;
    }
  };
}

tracer::counts tracer::read() const {
  const std::lock_guard lock(shared_->mutex);
  return {shared_->sent, shared_->dropped};
}

} // namespace twill::net
