#include "actors/session/request_checks.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace twill::actors {

namespace {

/// Returns the field that a detail of the form "`field` must be ..." names.
std::string field_of(const std::string& detail) {
  const auto first = detail.find('`');
  const auto last = first == std::string::npos ? first : detail.find('`', first + 1);
  return last == std::string::npos ? std::string() : detail.substr(first + 1, last - first - 1);
}

} // namespace

request_error to_request_error(errc code, std::string detail) {
  std::string field = field_of(detail);
  return {code, std::move(detail), std::move(field)};
}

std::optional<request_error> check_request(const request& asked, const served_model& model,
                                           const config::limit_options& limits) {
  if (!asked.model.empty() && asked.model != model.id)
    return request_error::of(errc::unknown_model,
                             {"model", "be \"" + model.id + "\"", "\"" + asked.model + "\""});
  if (const auto found = config::validate(asked.sampling, limits, model.files->text->vocab_size()))
    return request_error::of(errc::invalid_argument, *found);
  const auto refusal = [](const char* field, std::string rule, std::int32_t given) {
    return request_error::of(errc::invalid_argument,
                             {field, std::move(rule), std::to_string(given)});
  };
  if (asked.prompt_logprobs < -1 || asked.prompt_logprobs > limits.max_logprobs)
    return refusal("prompt_logprobs",
                   "be between 0 and " + std::to_string(limits.max_logprobs) +
                       " (`limits.max_logprobs`)",
                   asked.prompt_logprobs);
  if (asked.truncate_prompt_tokens < 0)
    return refusal("truncate_prompt_tokens", "be at least 1", asked.truncate_prompt_tokens);
  const auto size = static_cast<std::int32_t>(model.files->spec.embedding_size);
  if (asked.dimensions != 0 && asked.dimensions != size)
    return refusal("dimensions",
                   "be " + std::to_string(size) +
                       " or absent (vectors of this model cannot be shortened)",
                   asked.dimensions);
  return std::nullopt;
}

} // namespace twill::actors
