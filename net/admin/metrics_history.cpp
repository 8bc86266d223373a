#include "net/admin/metrics_history.hpp"

#include <utility>

namespace twill::net {
namespace {

void add_counts(std::vector<std::uint64_t>& to, const actors::histogram& from) {
  if (to.size() < from.counts.size()) to.resize(from.counts.size());
  for (std::size_t i = 0; i < from.counts.size(); ++i)
    to[i] += from.counts[i];
}

void write_counts(json_writer& json, const std::vector<std::uint64_t>& counts,
                  const std::vector<std::uint64_t>& before) {
  json.begin_array();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::uint64_t earlier = i < before.size() ? before[i] : 0;
    if (counts[i] != earlier) json.add(i).add(static_cast<std::int64_t>(counts[i] - earlier));
  }
  json.end_array();
}

void write_rows(json_writer& json, const std::deque<history_row>& rows) {
  json.begin_array();
  const history_row zeros;
  const history_row* before = &zeros;
  for (const auto& row : rows) {
    write_row(json, row, *before);
    before = &row;
  }
  json.end_array();
}

} // namespace

history_row make_history_row(std::int64_t at_unix_ms,
                             const std::vector<actors::model_stats>& models,
                             std::int64_t resident_bytes, std::int64_t open_sockets) {
  history_row row;
  auto& v = row.values;
  v[0] = at_unix_ms;
  for (const auto& [name, s] : models) {
    const std::int64_t own[] = {
        s.requests_running,
        s.requests_waiting,
        s.kv_blocks_used,
        s.kv_blocks_total,
        s.kv_host_blocks,
        s.kv_disk_blocks,
        static_cast<std::int64_t>(s.prompt_tokens),
        static_cast<std::int64_t>(s.generation_tokens),
        static_cast<std::int64_t>(s.prefix_cache_queries),
        static_cast<std::int64_t>(s.prefix_cache_hits),
        static_cast<std::int64_t>(s.kv_host_hits),
        static_cast<std::int64_t>(s.kv_disk_hits),
        static_cast<std::int64_t>(s.preemptions),
        static_cast<std::int64_t>(s.steps),
        static_cast<std::int64_t>(s.finished_stop + s.finished_length + s.finished_abort),
        static_cast<std::int64_t>(s.finished_error),
        s.device_memory_reserved_bytes,
        s.device_memory_touched_bytes,
    };
    static_assert(std::size(own) + 3 == history_columns.size());
    for (std::size_t i = 0; i < std::size(own); ++i)
      v[i + 1] += own[i];
    add_counts(row.first_tokens, s.time_to_first_token_seconds);
    add_counts(row.gaps, s.inter_token_latency_seconds);
  }
  v[v.size() - 2] = resident_bytes;
  v[v.size() - 1] = open_sockets;
  return row;
}

void write_bounds(json_writer& json, const std::vector<actors::model_stats>& models) {
  actors::engine_stats known;
  for (const auto& one : models)
    if (known.time_to_first_token_seconds.bounds.empty()) known = one.stats;
  const auto write = [&](std::string_view name, const std::vector<double>& bounds) {
    json.key(name).begin_array();
    for (const double bound : bounds)
      json.add(bound);
    json.end_array();
  };
  write("first_token_bounds_s", known.time_to_first_token_seconds.bounds);
  write("gap_bounds_s", known.inter_token_latency_seconds.bounds);
}

void write_row(json_writer& json, const history_row& row, const history_row& before) {
  json.begin_array();
  for (std::size_t i = 0; i < row.values.size(); ++i)
    json.add(row.values[i] - before.values[i]);
  write_counts(json, row.first_tokens, before.first_tokens);
  write_counts(json, row.gaps, before.gaps);
  json.end_array();
}

void metrics_history::add(history_row row) {
  if (added_++ % fine_per_coarse == 0) {
    coarse_.push_back(row);
    if (coarse_.size() > coarse_rows) coarse_.pop_front();
  }
  fine_.push_back(std::move(row));
  if (fine_.size() > fine_rows) fine_.pop_front();
}

void metrics_history::write(json_writer& json) const {
  json.key("coarse");
  write_rows(json, coarse_);
  json.key("fine");
  write_rows(json, fine_);
}

} // namespace twill::net
