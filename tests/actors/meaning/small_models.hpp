// Small random models of every family, with every kind of weights, compute and KV that a host
// supports.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "config/options.hpp"
#include "models/model.hpp"
#include "tests/actors/meaning/chats.hpp"

namespace twill::test {

struct small_model {
  std::string name; ///< for messages: describes the files of the model
  std::shared_ptr<const models::model> files;
  config::options options; ///< its compute type, its KV type, and a bound of its context
  chat_styles chats;       ///< the styles of its chat templates
};

/// The most tokens of a request's prompt and output together.
inline constexpr std::int32_t most_tokens = 128;

/// How many tokens a model's context has room for.
inline std::int32_t context_of(const small_model& model) {
  return std::min(static_cast<std::int32_t>(model.files->spec.context_length), most_tokens);
}

/// The number of models. The first `n_usual_models` differ from each other as much as possible.
std::size_t n_small_models();
inline constexpr std::size_t n_usual_models = 8;

/// The model is made at the first call and kept.
const small_model& small_model_at(std::size_t number);

} // namespace twill::test
