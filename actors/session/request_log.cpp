#include "actors/session/request_log.hpp"

#include <cstdio>

#include "config/base/log.hpp"

namespace twill::actors {
namespace {

/// A client chooses its own id; a longer one is cut.
constexpr std::size_t max_id_bytes = 128;

std::string milliseconds_of(std::chrono::nanoseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", std::chrono::duration<double, std::milli>(time).count());
  return text;
}

std::string id_of(const request_summary& about) {
  return about.client_id.substr(0, max_id_bytes);
}

} // namespace

std::string_view word_of(errc code) {
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
  }
  return "error";
}

std::string text_of(const request_summary& about) {
  std::string line = "request " + std::to_string(about.id) + " ended: status=";
  line += about.status;
  if (!about.client_id.empty()) line += " id=" + id_of(about);
  if (!about.tenant.empty()) line += " tenant=" + about.tenant;
  if (!about.model.empty()) line += " model=" + about.model;
  line += " prompt_tokens=" + std::to_string(about.use.prompt_tokens) +
          " cached_tokens=" + std::to_string(about.use.cached_tokens) +
          " output_tokens=" + std::to_string(about.use.completion_tokens);
  if (about.queued) line += " queue_ms=" + milliseconds_of(*about.queued);
  if (about.first_token) line += " first_token_ms=" + milliseconds_of(*about.first_token);
  return line + " total_ms=" + milliseconds_of(about.total);
}

std::string members_of(const request_summary& about) {
  std::string out = "\"request\":" + std::to_string(about.id);
  const auto add_text = [&out](const char* name, std::string_view text) {
    out += std::string(",\"") + name + "\":";
    log::append_json_string(out, text);
  };
  const auto add_number = [&out](const char* name, const std::string& number) {
    out += std::string(",\"") + name + "\":" + number;
  };
  add_text("id", id_of(about));
  add_text("tenant", about.tenant);
  add_text("model", about.model);
  add_text("status", about.status);
  add_number("prompt_tokens", std::to_string(about.use.prompt_tokens));
  add_number("cached_tokens", std::to_string(about.use.cached_tokens));
  add_number("output_tokens", std::to_string(about.use.completion_tokens));
  if (about.queued) add_number("queue_ms", milliseconds_of(*about.queued));
  if (about.first_token) add_number("first_token_ms", milliseconds_of(*about.first_token));
  add_number("total_ms", milliseconds_of(about.total));
  return out;
}

void log_request(const request_summary& about) {
  if (!log::enabled(log::level::info)) return;
  log::write(log::level::info, text_of(about), members_of(about));
}

} // namespace twill::actors
