#include "actors/trace/recording.hpp"

#include <utility>

#include "actors/trace/scheduler_trace.hpp"
#include "actors/trace/trace_file.hpp"
#include "config/base/log.hpp"

namespace twill::actors {

namespace {

struct recording {
  explicit recording(std::shared_ptr<trace_file> file) : stream(std::move(file)), trace(stream) {}

  trace_stream stream;
  scheduler_trace trace;
};

} // namespace

std::shared_ptr<batcher_observer> begin_recording(const config::scheduler_options& options,
                                                  const std::string& model,
                                                  const batcher_limits& limits, bool has_tiers) {
  if (options.trace.empty()) return std::make_shared<batcher_observer>();
  auto file = trace_file::of_process(options.trace, options.trace_size_bytes);
  if (!file.ok()) {
    log::error(file.detail());
    return std::make_shared<batcher_observer>();
  }
  auto begun = std::make_shared<recording>(std::move(file).value());
  begun->trace.begin(model, limits, has_tiers);
  return {begun, &begun->trace};
}

} // namespace twill::actors
