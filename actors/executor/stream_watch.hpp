// stream_watch: records what a decoder that streams its weights does in its steps, and makes a
// report of it from time to time for monitoring.
//
// Threads: the executor's. The object must outlive the decoder, whose worker threads record the
// beginning and end of each of their operations in it.
#pragma once

#include <chrono>
#include <memory>

#include "actors/port/engine_port.hpp"
#include "models/offload/streams/span_recorder.hpp"

namespace twill::models {
class decoder;
}

namespace twill::actors {

class stream_watch {
public:
  /// Begins to record if the decoder `of`, which was just loaded, streams its weights.
  void watch(models::decoder& of);

  void step_begins();
  void step_ends();

  /// A report of where the weights are, without a step; null if none are streamed.
  std::shared_ptr<const stream_report> placement() const;
  /// Returns the report of the last step, at most twice a second; null otherwise.
  std::shared_ptr<const stream_report> take();

private:
  using clock = models::offload::span_recorder::clock;
  stream_report totals() const;

  static constexpr std::size_t most_spans = 600;
  static constexpr std::chrono::milliseconds interval{500}; ///< least time between two reports

  const models::decoder* decoder_ = nullptr;
  models::offload::span_recorder recorder_{most_spans};
  clock::time_point began_{};
  clock::time_point reported_{};
  std::shared_ptr<const stream_report> report_;
};

} // namespace twill::actors
