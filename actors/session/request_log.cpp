#include "actors/session/request_log.hpp"

#include <algorithm>
#include <cstdio>

#include "config/base/log.hpp"

namespace twill::actors {
namespace {

/// A client may choose any id; a longer id is cut in the log.
constexpr std::size_t max_id_bytes = 128;

std::string milliseconds_of(std::chrono::nanoseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", std::chrono::duration<double, std::milli>(time).count());
  return text;
}

std::string id_of(const request_summary& about) {
  return about.client_id.substr(0, max_id_bytes);
}

/// The id as one word, so that no part of it can be mistaken for another member of the line.
std::string word_of_id(const request_summary& about) {
  std::string id = id_of(about);
  std::replace_if(
      id.begin(), id.end(), [](char c) { return c <= 32 || c >= 127; }, '?');
  return id;
}

} // namespace

std::string text_of(const request_summary& about) {
  std::string line = "request " + std::to_string(about.id) + " ended: status=";
  line += about.status;
  if (!about.client_id.empty()) line += " id=" + word_of_id(about);
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
