// session_sink: the interface through which the batcher's logic answers sessions, the actors that
// serve one request each.
//
// Called on the batcher's thread, during a call of batcher_core. An implementation must not call
// batcher_core back from one of these functions.
#pragma once

#include "actors/messages.hpp"

namespace twill::actors {

/// Receives the answers to sessions.
class session_sink {
public:
  virtual ~session_sink() = default;
  virtual void queued(request_id request) = 0;
  virtual void scored(request_id request, prompt_scored scores) = 0;
  virtual void pooled(request_id request, prompt_pooled pooled) = 0;
  virtual void token(request_id request, token_ready token) = 0;
  /// The final answer to a request that did not end by itself.
  virtual void failed(request_id request, const request_error& why) = 0;
  /// The request holds no resources any more.
  virtual void forgotten(request_id request) = 0;
};

} // namespace twill::actors
