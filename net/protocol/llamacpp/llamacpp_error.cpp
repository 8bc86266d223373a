#include "net/protocol/llamacpp/llamacpp_error.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "net/error_map.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/own_names.hpp"

namespace twill::net {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> llamacpp_names{{
    {"max_tokens", "n_predict"},
    {"n", "n_cmpl"},
    {"logprobs", "n_probs"},
    {"repetition_penalty", "repeat_penalty"},
}};

std::string_view type_of(const api_error& error, const wire_error& wire) {
  const auto* of_engine = std::get_if<actors::errc>(&error.code);
  const bool too_long = of_engine != nullptr && *of_engine == actors::errc::context_too_long;
  return too_long ? "exceed_context_size_error" : wire.type;
}

} // namespace

styled_error llamacpp_error(const api_error& error) {
  const auto wire = map_error(error);
  styled_error styled{wire.http_status, {}};
  json_writer json(styled.body);
  json.begin_object().key("error").begin_object();
  json.field("code", wire.http_status)
      .field("message", with_own_names(error.message, llamacpp_names))
      .field("type", type_of(error, wire));
  json.end_object().end_object();
  return styled;
}

} // namespace twill::net
