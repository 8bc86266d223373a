// metrics_history: the server's metrics of one hour in buffers of fixed size: one row for each
// second of the last five minutes, and one row for every tenth second of the last hour. The class
// does no I/O and reads no clock. It has no mutex, so its owner must lock one.
//
// Counters are stored as totals since the start. So the difference of any two rows gives a rate,
// even if rows between the two are missing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

/// The names of a row's values, in order. Values of models are summed over all models.
inline constexpr std::array<std::string_view, 21> history_columns = {
    "at_unix_ms",
    "requests_running",
    "requests_waiting",
    "kv_blocks_used",
    "kv_blocks_total",
    "kv_host_blocks",
    "kv_disk_blocks",
    "prompt_tokens",
    "generation_tokens",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "kv_host_hits",
    "kv_disk_hits",
    "preemptions",
    "steps",
    "requests_ended",
    "requests_failed",
    "device_memory_reserved_bytes",
    "device_memory_touched_bytes",
    "resident_bytes",
    "open_sockets",
};

struct history_row {
  std::array<std::int64_t, history_columns.size()> values{}; ///< in the order of history_columns
  /// Histogram counts of the time to the first token.
  std::vector<std::uint64_t> first_tokens;
  /// Histogram counts of the time between tokens.
  std::vector<std::uint64_t> gaps;
};

history_row make_history_row(std::int64_t at_unix_ms,
                             const std::vector<actors::model_stats>& models,
                             std::int64_t resident_bytes, std::int64_t open_sockets);

/// Writes the members `first_token_bounds_s` and `gap_bounds_s`, which are the bucket bounds of the
/// two histograms in each row (times to the first token, times between tokens). All models have the
/// same bounds; the members are empty as long as no model has been loaded.
void write_bounds(json_writer& json, const std::vector<actors::model_stats>& models);

/// Writes a row as an array: first its values, then for each of its two histograms (time to the
/// first token, time between tokens) an array of pairs of bucket index and count. All numbers are
/// differences from the row `before`.
void write_row(json_writer& json, const history_row& row, const history_row& before);

class metrics_history {
public:
  static constexpr std::size_t fine_rows = 300;   ///< one row per second
  static constexpr std::size_t coarse_rows = 360; ///< one row per ten seconds
  static constexpr std::size_t fine_per_coarse = 10;

  void add(history_row row);
  /// Writes the members `coarse` and `fine`, arrays of rows in the form of write_row(). Each row is
  /// written as differences from the row before it; the first row of each array is written as it
  /// is.
  void write(json_writer& json) const;

private:
  std::deque<history_row> fine_;
  std::deque<history_row> coarse_;
  std::size_t added_ = 0;
};

} // namespace twill::net
