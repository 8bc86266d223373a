// output_delivery: sends what a step has drawn and scored to the sessions (the actors that serve
// one request each).
//
// One thread at a time (the batcher's). The scores (log-probabilities) of a prompt's tokens are
// collected in its sequence_groups::group over all steps that compute the prompt, and delivered
// together. A drawn token is delivered at once, and ends its sequence if it is an end id, a stop
// id, or the last one by length. All objects that are given to the constructor must outlive this
// one.
#pragma once

#include "actors/batcher/request_orders.hpp"
#include "actors/batcher/sequence_groups.hpp"
#include "actors/batcher/session_sink.hpp"
#include "actors/messages.hpp"
#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

class output_delivery {
public:
  output_delivery(sequence_groups& groups, scheduler& sequences, session_sink& sessions,
                  request_orders& orders)
      : groups_(groups), scheduler_(sequences), sessions_(sessions), orders_(orders) {}

  /// Keeps the scores of this step's prompt tokens.
  void keep_scores(const step_result& result);
  /// Delivers the scores once the row with the prompt's last token is computed.
  void deliver_scores(const sequence_groups::sequence& s, const planned_row& row);
  /// Delivers what the step has drawn for the sequence: a token, or the embedding if the request
  /// asks for one. The caller has already appended the token to `s.output`.
  void deliver(sequence_id id, sequence_groups::sequence& s, const drawn_token& drawn,
               const step_result& result);

private:
  void end(sequence_id id, sequence_groups::sequence& s);

  sequence_groups& groups_;
  scheduler& scheduler_;
  session_sink& sessions_;
  request_orders& orders_;
};

} // namespace twill::actors
