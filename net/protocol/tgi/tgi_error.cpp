#include "net/protocol/tgi/tgi_error.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "net/error_map.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/own_names.hpp"

namespace twill::net {
namespace {

struct tgi_kind {
  int http_status;
  std::string_view type;
};

tgi_kind kind_of(errc code, const wire_error& wire) {
  if (code == errc::invalid_field) return {422, "validation"};
  if (code == errc::bad_json || code == errc::bad_utf8) return {wire.http_status, "validation"};
  return {wire.http_status, wire.http_status == 429 ? "overloaded" : wire.code};
}

tgi_kind kind_of(actors::errc code, const wire_error& wire) {
  switch (code) {
  case actors::errc::executor_failed:
  case actors::errc::model_changed:
    return {424, "generation"};
  case actors::errc::timed_out:
  case actors::errc::slow_reader:
  case actors::errc::cancelled:
    return {500, "incomplete_generation"};
  default:
    break;
  }
  if (wire.http_status == 400) return {422, "validation"};
  return {wire.http_status, wire.http_status == 429 ? "overloaded" : wire.code};
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> tgi_names{{
    {"prompt", "inputs"},
    {"max_tokens", "max_new_tokens"},
    {"n", "best_of"},
    {"logprobs", "top_n_tokens"},
    {"prompt_logprobs", "decoder_input_details"},
    {"truncate_prompt_tokens", "truncate"},
}};

} // namespace

styled_error tgi_error(const api_error& error) {
  const auto wire = map_error(error);
  const auto kind = std::visit([&](auto code) { return kind_of(code, wire); }, error.code);
  styled_error styled{kind.http_status, {}};
  json_writer(styled.body)
      .begin_object()
      .field("error", with_own_names(error.message, tgi_names))
      .field("error_type", kind.type)
      .end_object();
  return styled;
}

} // namespace twill::net
