// stream_watch: what a decoder that streams its weights does in its steps, now and then as a report
// for those who look on.
//
// Threads: the executor's. It outlives the decoder that it watches, whose workers record spans.
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
  /// Begins to watch, where the decoder streams its weights; `of` is one that was just loaded.
  void watch(models::decoder& of);

  void step_begins();
  void step_ends();

  /// Where weights live, without a step; null where none are streamed.
  std::shared_ptr<const stream_report> placement() const;
  /// The report of the last step, at most twice a second; null otherwise.
  std::shared_ptr<const stream_report> take();

private:
  using clock = models::offload::span_recorder::clock;
  stream_report totals() const;

  static constexpr std::size_t most_spans = 600;
  static constexpr std::chrono::milliseconds interval{500}; ///< between two reports

  const models::decoder* decoder_ = nullptr;
  models::offload::span_recorder recorder_{most_spans};
  clock::time_point began_{};
  clock::time_point reported_{};
  std::shared_ptr<const stream_report> report_;
};

} // namespace twill::actors
