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

request_error breach(const std::string& field, const std::string& must, std::int32_t got) {
  return {errc::invalid_argument,
          "`" + field + "` must be " + must + ", got " + std::to_string(got), field};
}

} // namespace

request_error to_request_error(errc code, std::string detail) {
  std::string field = field_of(detail);
  return {code, std::move(detail), std::move(field)};
}

std::optional<request_error> check_request(const request& asked, const served_model& model,
                                           const config::limit_options& limits) {
  if (!asked.model.empty() && asked.model != model.id)
    return request_error{errc::unknown_model,
                         "`model` must be \"" + model.id + "\", got \"" + asked.model + "\"",
                         "model"};
  const auto valid = config::validate(asked.sampling, limits, model.files->text->vocab_size());
  if (!valid.ok()) return to_request_error(errc::invalid_argument, valid.error().detail);
  if (asked.prompt_logprobs < -1 || asked.prompt_logprobs > limits.max_logprobs)
    return breach("prompt_logprobs",
                  "between 0 and " + std::to_string(limits.max_logprobs) +
                      " (`limits.max_logprobs`)",
                  asked.prompt_logprobs);
  if (asked.truncate_prompt_tokens < 0)
    return breach("truncate_prompt_tokens", "at least 1", asked.truncate_prompt_tokens);
  const auto size = static_cast<std::int32_t>(model.files->spec.embedding_size);
  if (asked.dimensions != 0 && asked.dimensions != size)
    return breach("dimensions",
                  std::to_string(size) + " or absent (vectors of this model cannot be shortened)",
                  asked.dimensions);
  return std::nullopt;
}

} // namespace twill::actors
