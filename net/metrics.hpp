// metrics_text: /metrics in Prometheus' text format. Any thread; reads one snapshot of the engine.
//
// Names are vLLM's suffixes and units under the prefix `twill_`. With `metrics.compat = "vllm"`
// vLLM's own names, labels and older spellings stand beside them, so that its dashboards answer;
// with "0.1" the names of twill 0.1 do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::net {

class tracer;

/// Memory of this process that is in RAM, and what of it are pages of mapped files.
struct process_memory {
  std::int64_t resident_bytes = 0, mapped_file_bytes = 0;
};
process_memory read_process_memory();

/// Touched device memory that is part of the process's: all of the models' on a host.
std::int64_t own_device_bytes(const std::vector<actors::model_stats>& models);

struct metrics_sources {
  const actors::engine_port& engine;
  std::int64_t open_sockets = 0;
  std::string compat = {};        ///< `metrics.compat`
  const tracer* traces = nullptr; ///< null: nothing is traced
  std::int64_t stored_bytes = 0;  ///< of stored responses
  std::uint64_t stored_write_failures = 0;
};

std::string metrics_text(const metrics_sources& from);

/// What metrics_text() gives, and beside it what each tenant asked of each model. For
/// administrators alone.
std::string admin_metrics_text(const metrics_sources& from);

} // namespace twill::net
