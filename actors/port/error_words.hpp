// word_of: a stable name for each error of the engine. The names are the same on the wire and in
// the log. The functions are pure.
#pragma once

#include <string_view>

#include "actors/port/request_error.hpp"

namespace twill::actors {

constexpr std::string_view word_of(errc code) {
  switch (code) {
  case errc::invalid_argument:
    return "invalid_value";
  case errc::context_too_long:
    return "context_length_exceeded";
  case errc::unknown_model:
    return "model_not_found";
  case errc::empty_prompt:
    return "empty_prompt";
  case errc::no_chat_template:
    return "no_chat_template";
  case errc::template_failed:
    return "template_failed";
  case errc::grammar_refused:
    return "grammar_refused";
  case errc::queue_full:
    return "queue_full";
  case errc::rate_limited:
    return "rate_limit_exceeded";
  case errc::queue_timed_out:
    return "queue_timeout";
  case errc::too_large:
    return "request_too_large";
  case errc::not_ready:
    return "model_not_ready";
  case errc::shutting_down:
    return "shutting_down";
  case errc::timed_out:
    return "request_timed_out";
  case errc::executor_failed:
    return "executor_failed";
  case errc::slow_reader:
    return "slow_reader";
  case errc::not_stored:
    return "storage_full";
  case errc::cancelled:
    return "cancelled";
  case errc::interrupted:
    return "interrupted";
  case errc::model_changed:
    return "model_changed";
  }
  return "error";
}

} // namespace twill::actors
