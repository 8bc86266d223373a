#include "config/detail/model_keys.hpp"

#include <algorithm>
#include <chrono>

#include "config/base/assert.hpp"
#include "config/detail/rules.hpp"

namespace twill::config::detail {
namespace {

using namespace std::chrono_literals;

#define TWILL_MEMBER(member) [](shared_model_options& o) -> member_address { return &o.member; }

/// Returns a row of another table, whose rule and description a row of this table reuses.
const key& row_named(std::string_view name) {
  const auto* found = find_key(name);
  TWILL_ASSERT(found != nullptr, "a row of [models] must name a row of another table");
  return *found;
}

model_key as_in_key(std::string_view name, member_address (*locate)(shared_model_options&),
                    std::string_view own_name) {
  const auto& row = row_named(own_name);
  return {name, locate, row.unit, row.possible, row.doc};
}

const std::vector<model_key>& model_rows() {
  static const std::vector<model_key> table{
      // clang-format off
      {"models.path", TWILL_MEMBER(model.path), "", row_named("model.path").possible,
       "The GGUF file, Hugging Face folder, hf:ORG/NAME[:FILE] or dummy:PRESET that is served; see `model.path`."},
      {"models.name", TWILL_MEMBER(model.name), "", row_named("model.name").possible,
       "The id that clients see. When empty, it is the name of the table."},
      as_in_key("models.compute", TWILL_MEMBER(model.compute), "model.compute"),
      as_in_key("models.chat_template", TWILL_MEMBER(model.chat_template), "model.chat_template"),
      as_in_key("models.tool_format", TWILL_MEMBER(model.tool_format), "model.tool_format"),
      {"models.aliases", TWILL_MEMBER(aliases), "", list_of_words(),
       "Further names that requests may use for the model."},
      {"models.pin", TWILL_MEMBER(pin), "", either(),
       "Whether the model is loaded at the start and never put to sleep to make room for another or "
       "because nobody uses it."},
      {"models.keep_alive", TWILL_MEMBER(keep_alive), "", time_between(0ms, 8760h),
       "The time without a request after which the model is put to sleep and gives its memory back. 0 "
       "keeps it until another model needs the room."},
      as_in_key("models.kv.events", TWILL_MEMBER(kv_events.endpoint), "kv.events"),
      as_in_key("models.kv.events_topic", TWILL_MEMBER(kv_events.topic), "kv.events_topic"),
      as_in_key("models.kv.events_format", TWILL_MEMBER(kv_events.format), "kv.events_format"),
      // clang-format on
  };
  return table;
}

#undef TWILL_MEMBER

} // namespace

std::span<const model_key> model_keys() {
  return model_rows();
}

bool is_model_key(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_' || c == ':';
  });
}

std::string model_key_words() {
  return "1 to 128 letters, digits, dots, colons, dashes or underscores";
}

} // namespace twill::config::detail
