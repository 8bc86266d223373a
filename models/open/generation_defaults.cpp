#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "config/options.hpp"
#include "models/open/openers.hpp"

namespace twill::models {
namespace {

failure not_a_number(const char* key) {
  return {errc::bad_metadata,
          "generation_config.json: `" + std::string(key) + "` must be a finite number"};
}

} // namespace

result<config::sampling_params> generation_defaults(const value* generation_config,
                                                    std::int32_t vocab_size) {
  config::sampling_params params;
  if (generation_config == nullptr) return params;
  const std::pair<const char*, float*> numbers[] = {
      {"temperature", &params.temperature},
      {"top_p", &params.top_p},
      {"min_p", &params.min_p},
      {"repetition_penalty", &params.repetition_penalty},
  };
  for (const auto& [key, target] : numbers) {
    const value* v = generation_config->find(key);
    if (v == nullptr || v->is_null()) continue;
    const auto number = v->as_number();
    if (!number.has_value()) return not_a_number(key);
    *target = static_cast<float>(*number);
  }
  if (const value* v = generation_config->find("top_k"); v != nullptr && !v->is_null()) {
    if (v->as_int() == nullptr) return not_a_number("top_k");
    // Many configs have the usual top_k of 50, which may exceed a small vocabulary.
    params.top_k =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(*v->as_int(), INT32_MIN, vocab_size));
  }
  if (const value* v = generation_config->find("do_sample"); v != nullptr && *v == value(false))
    params.temperature = 0;
  if (const auto found = config::validate(params, config::limit_options{}, vocab_size))
    return failure{errc::bad_metadata, "generation_config.json: " + text_of(*found)};
  return params;
}

} // namespace twill::models
