#include "net/protocol/stored_request.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace twill::net {
namespace {

/// The floating-point parameters whose defaults come from the configuration or the model's files.
template <class Sampling>
auto reals_of(Sampling& sampling) {
  return std::array{std::pair{"temperature", &sampling.temperature},
                    std::pair{"top_p", &sampling.top_p}, std::pair{"min_p", &sampling.min_p},
                    std::pair{"repetition_penalty", &sampling.repetition_penalty}};
}

void restore(const value& asked, std::string_view name, std::int32_t& to) {
  const auto* v = asked.find(name);
  if (v != nullptr && v->as_int() != nullptr) to = static_cast<std::int32_t>(*v->as_int());
}

} // namespace

stored_head head_of(const reply_identity& identity, const config::sampling_params& sampling,
                    const value& body, const std::string& tenant, value_object more) {
  stored_head head;
  head.id = identity.id;
  head.tenant = tenant;
  head.model = identity.model;
  head.created_unix_s = identity.created_unix_s;
  head.n_choices = sampling.n;
  more.emplace_back("body", body);
  add_sampling(more, sampling);
  head.asked = std::move(more);
  return head;
}

result<const value*> body_of(const stored_head& head) {
  const auto* body = head.asked.find("body");
  if (body != nullptr && body->as_object() != nullptr) return body;
  return fail({errc::no_such_response, "the stored response has no request", ""});
}

reply_identity identity_of(const stored_head& head) {
  return {head.id, head.model, head.created_unix_s};
}

void add_sampling(value_object& asked, const config::sampling_params& sampling) {
  asked.emplace_back("max_output_tokens", std::int64_t{sampling.max_tokens});
  asked.emplace_back("top_k", std::int64_t{sampling.top_k});
  for (const auto& [name, from] : reals_of(sampling))
    asked.emplace_back(name, static_cast<double>(*from));
}

void restore_sampling(const value& asked, config::sampling_params& sampling) {
  for (const auto& [name, to] : reals_of(sampling)) {
    const auto* v = asked.find(name);
    if (const auto number = v == nullptr ? std::nullopt : v->as_number())
      *to = static_cast<float>(*number);
  }
  restore(asked, "max_output_tokens", sampling.max_tokens);
  restore(asked, "top_k", sampling.top_k);
}

} // namespace twill::net
