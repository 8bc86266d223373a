// metrics_text(): returns the text of /metrics in Prometheus' format. Any thread may call it; it
// reads one snapshot of the engine.
//
// Metric names are the prefix `twill_` and vLLM's suffixes, in vLLM's units. With `metrics.compat =
// "vllm"` the text also has vLLM's own names, labels and older spellings, so that vLLM dashboards
// work; with "0.1" it also has the names of twill 0.1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::net {

class tracer;

/// Resident memory of this process, and the part of it that is pages of mapped files.
struct process_memory {
  std::int64_t resident_bytes = 0, mapped_file_bytes = 0;
};
process_memory read_process_memory();

/// The part of the process's resident memory that is device memory of models. Only a model that
/// runs on the CPU has such memory; a GPU's memory is not part of the process.
std::int64_t own_device_bytes(const std::vector<actors::model_stats>& models);

struct metrics_sources {
  const actors::engine_port& engine;
  std::int64_t open_sockets = 0;
  std::string compat = {};        ///< `metrics.compat`
  const tracer* traces = nullptr; ///< null: requests are not traced
  std::int64_t stored_bytes = 0;  ///< bytes of all stored responses
  std::uint64_t stored_write_failures = 0;
};

std::string metrics_text(const metrics_sources& from);

/// Returns the text of metrics_text() and, in addition, the counters of each tenant for each model.
/// Only administrators may see it.
std::string admin_metrics_text(const metrics_sources& from);

} // namespace twill::net
