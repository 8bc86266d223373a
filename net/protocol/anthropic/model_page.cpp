#include "net/protocol/anthropic/model_page.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

/// Formats a time as "2026-11-28T09:30:00Z" (RFC 3339).
std::string written_time(std::int64_t unix_s) {
  using namespace std::chrono;
  const sys_seconds at{seconds(std::max<std::int64_t>(unix_s, 0))};
  const auto day = floor<days>(at);
  const year_month_day date(day);
  const hh_mm_ss time(at - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

void add_listed_model(json_writer& json, const actors::model_info& model) {
  json.begin_object()
      .field("type", "model")
      .field("id", model.id)
      .field("display_name", model.id)
      .field("created_at", written_time(model.created_unix_s))
      .field("lifecycle", "active")
      .field("max_input_tokens", model.max_model_len)
      .field("max_tokens", model.max_model_len)
      .end_object();
}

} // namespace

result<std::string> model_page_body(std::span<const actors::model_info> models,
                                    const model_cursor& cursor) {
  std::optional<api_error> error;
  const auto place_of = [&](const char* name, const std::string& id, std::size_t absent) {
    if (id.empty()) return absent;
    for (std::size_t i = 0; i < models.size(); ++i)
      if (models[i].id == id) return i;
    error = api_error::of(
        {std::string(name), "be the id of a model of this list", describe(value(id))});
    return absent;
  };
  if (!cursor.before_id.empty() && !cursor.after_id.empty())
    return fail(api_error::of(
        {"before_id", "be absent when `after_id` is given", describe(value(cursor.before_id))}));
  std::size_t end = place_of("before_id", cursor.before_id, models.size());
  std::size_t begin = cursor.after_id.empty() ? 0 : place_of("after_id", cursor.after_id, 0) + 1;
  if (error) return fail(std::move(*error));
  const bool more = end - begin > cursor.limit;
  if (more && !cursor.before_id.empty())
    begin = end - cursor.limit;
  else if (more)
    end = begin + cursor.limit;

  std::string out;
  json_writer json(out);
  json.begin_object().key("data").begin_array();
  for (std::size_t i = begin; i < end; ++i)
    add_listed_model(json, models[i]);
  json.end_array().field("has_more", more);
  if (begin < end)
    json.field("first_id", models[begin].id).field("last_id", models[end - 1].id);
  else
    json.field("first_id", nullptr).field("last_id", nullptr);
  json.end_object();
  return out;
}

std::string anthropic_model_body(const actors::model_info& model) {
  std::string out;
  json_writer json(out);
  add_listed_model(json, model);
  return out;
}

} // namespace twill::net
