// request_stats: counts one request in the server's statistics and in those of its tenant and
// model, from the queue to its end.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/detail/stats_board.hpp"
#include "actors/messages.hpp"
#include "actors/port/request_summary.hpp"
#include "config/sampling.hpp"

namespace twill::actors {

/// How a request ended.
struct request_end {
  enum class kind { stop, length, cancelled, error };
  kind how = kind::stop;
  std::string_view status; ///< see request_summary::status
  usage use;
  std::int32_t earlier_tokens = 0; ///< output tokens of an earlier run, over all choices
  std::int32_t n_choices = 0;      ///< 0: the request ended before its choices began
  std::int32_t longest_choice = 0; ///< output tokens of the longest choice
  const config::sampling_params* sampling = nullptr; ///< null if the request ended before they were
                                                     ///< known
  bool is_pooled = false; ///< the request asked for pooled hidden states, and generates nothing
};

class request_stats {
public:
  /// `board` outlives the object. `tenant` is empty if there are no tenants.
  request_stats(stats_board& board, std::string tenant, steady_clock::time_point submitted);

  /// The model that the request uses from now on; until then it counts for the model "".
  void set_model(std::string id) { model_ = std::move(id); }
  void waits();
  /// A token was drawn, or the prompt was pooled.
  void progressed(steady_clock::time_point scheduled, const usage& use,
                  steady_clock::time_point now);
  /// Whether progressed() was called.
  bool has_run() const { return first_token_ != steady_clock::time_point{}; }
  /// Counts the end. Nothing may be counted after it.
  void ended(const request_end& end);
  /// Sets the durations of the phases in `about`.
  void describe(request_summary& about) const;

private:
  void count_for_server(const request_end& end);
  void count_for_tenant(const request_end& end);
  void count_prompt(tenant_stats& s, const usage& use);

  stats_board& board_;
  std::string tenant_;
  std::string model_;
  steady_clock::time_point submitted_, scheduled_, first_token_, last_token_;
  bool counted_waiting_ = false; ///< the tenant's statistics count the request as waiting
  bool counted_prompt_ = false;  ///< the tenant's statistics have counted the prompt
};

} // namespace twill::actors
