// metrics_history: an hour of the server's figures in rings of fixed size: each second of the last
// five minutes, and every tenth second of the hour. Without I/O and clock; callers lock.
//
// Counters are kept as they are, so that any two rows give the rate between them and a row that is
// left out loses nothing but detail.
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

/// What a row tells, in this order; sums over all models where they are of models.
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
  std::array<std::int64_t, history_columns.size()> values{}; ///< by history_columns
  std::vector<std::uint64_t> first_tokens;                   ///< counts of times to first token
  std::vector<std::uint64_t> gaps;                           ///< counts of times between tokens
};

history_row make_history_row(std::int64_t at_unix_ms,
                             const std::vector<actors::model_stats>& models,
                             std::int64_t resident_bytes, std::int64_t open_sockets);

/// Members `first_token_bounds_s` and `gap_bounds_s`: the buckets of a row's histograms. They are
/// those of all models; empty while no model has been loaded.
void write_bounds(json_writer& json, const std::vector<actors::model_stats>& models);

/// A row as an array: its values, then of both histograms pairs of a bucket and its count; all as
/// differences to the row before.
void write_row(json_writer& json, const history_row& row, const history_row& before);

class metrics_history {
public:
  static constexpr std::size_t fine_rows = 300;   ///< one a second
  static constexpr std::size_t coarse_rows = 360; ///< one in ten seconds
  static constexpr std::size_t fine_per_coarse = 10;

  void add(history_row row);
  /// Members `coarse` and `fine`: the rows as write_row() writes them, the first of each against
  /// zeros.
  void write(json_writer& json) const;

private:
  std::deque<history_row> fine_;
  std::deque<history_row> coarse_;
  std::size_t added_ = 0;
};

} // namespace twill::net
