// request_error: why the engine refuses or ends a request. Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "config/base/breach.hpp"
#include "config/base/result.hpp"

namespace twill::actors {

/// Why a request was refused or failed. Only net/error_map.cpp turns these values into codes of a
/// protocol.
enum class errc {
  invalid_argument, ///< a field breaks its rule; `param` names it
  context_too_long, ///< prompt (+ requested output) exceeds the context limit
  unknown_model,    ///< no model of this name is served
  empty_prompt,     ///< the prompt has no tokens
  no_chat_template, ///< the prompt is a chat, and the model has no chat template
  template_failed,  ///< the chat template refused these messages
  /// the output format that the request asks for cannot be enforced, or took too long to compile
  grammar_refused,
  queue_full,      ///< too many requests wait; the client may retry later
  rate_limited,    ///< the tenant has used up its token budget; the client may retry later
  queue_timed_out, ///< the request waited too long for its turn; the client may retry later
  too_large,       ///< the request can never fit the KV cache
  not_ready,       ///< the model is still loading, or failed to load
  shutting_down,   ///< the daemon is draining and takes no new requests
  timed_out,       ///< the request's deadline passed
  executor_failed, ///< the step that held this request failed
  slow_reader,     ///< the client did not read its output for too long
  not_stored,      ///< the request was to be stored, and the disk could not store it
  cancelled,       ///< a call that names the request has cancelled it
  /// the daemon stops; a stored request goes on from its stored state when the daemon starts again
  interrupted,
  model_changed, ///< the request continues an earlier run, and the model has changed since that run
};

template <class T>
using result = twill::result<T, errc>;

struct request_error {
  errc code = errc::executor_failed;
  std::string message;            ///< "`field` must be ..., got ..."
  std::string param;              ///< the field at fault, or empty
  std::int32_t retry_after_s = 0; ///< > 0: a retry may succeed after so many seconds; 0: unknown

  static request_error of(errc code, const breach& found) {
    return {code, text_of(found), found.field};
  }
  /// The error of requests that end because the engine has lost its device.
  static request_error lost_with_device() {
    return {errc::shutting_down,
            "the server lost this request with its device, and ends; retry the request once the "
            "server runs again",
            ""};
  }
};

using request_id = std::uint64_t;

} // namespace twill::actors
