#include "net/stored/stored_head.hpp"

#include <bit>

#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/json/members.hpp"

namespace twill::net {
namespace {

constexpr std::int64_t most_choices = 1 << 16; ///< more than any configuration allows

std::int64_t number_of(const value* v, std::int64_t otherwise = 0) {
  return v != nullptr && v->as_int() != nullptr ? *v->as_int() : otherwise;
}

} // namespace

std::string write_head(const stored_head& head) {
  std::string out;
  json_writer(out)
      .begin_object()
      .field("id", head.id)
      .field("tenant", head.tenant)
      .field("model", head.model)
      .field("client_id", head.client_id)
      .field("created", head.created_unix_s)
      .field("deadline_ms", head.deadline_unix_ms)
      .field("seed", std::bit_cast<std::int64_t>(head.seed))
      .field("choices", head.n_choices)
      .field("background", head.background)
      .field("asked", head.asked)
      .end_object();
  return out;
}

std::optional<stored_head> read_head(std::string_view text) {
  const auto parsed = parse_own_json(text);
  if (!parsed.ok()) return std::nullopt;
  const auto& from = parsed.value();
  stored_head head;
  head.id = text_of(from.find("id"));
  head.tenant = text_of(from.find("tenant"));
  head.model = text_of(from.find("model"));
  head.client_id = text_of(from.find("client_id"));
  head.created_unix_s = number_of(from.find("created"));
  head.deadline_unix_ms = number_of(from.find("deadline_ms"));
  head.seed = std::bit_cast<std::uint64_t>(number_of(from.find("seed")));
  const auto n_choices = number_of(from.find("choices"), 1);
  if (n_choices < 1 || n_choices > most_choices) return std::nullopt;
  head.n_choices = static_cast<std::int32_t>(n_choices);
  if (const auto* background = from.find("background"))
    head.background = background->as_bool() != nullptr && *background->as_bool();
  const auto* asked = from.find("asked");
  if (head.id.empty() || asked == nullptr || asked->as_object() == nullptr) return std::nullopt;
  head.asked = *asked;
  return head;
}

} // namespace twill::net
