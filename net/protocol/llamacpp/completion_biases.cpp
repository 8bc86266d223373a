#include "net/protocol/llamacpp/completion_biases.hpp"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace twill::net {
namespace {

constexpr std::size_t most_bias_entries = 1024;
constexpr std::size_t most_bias_text = 4096; ///< bytes of all texts together

/// Reads a bias. A ban becomes -100, the lowest bias.
std::optional<float> bias_of(fields& from, const std::string& name, const value& given) {
  constexpr float ban = -100;
  if (given == value(false)) return ban;
  const auto number = given.as_number();
  if (number.has_value() && std::abs(*number) <= 100) return static_cast<float>(*number);
  from.reject(name, "a number within [-100, 100], or false", given);
  return std::nullopt;
}

void add_bias_of_text(fields& from, const codec_context& context, const std::string& text,
                      float bias, config::sampling_params& to) {
  const auto ids = context.engine.tokenize(context.model.id, {text, false}, false);
  if (!ids.ok()) return from.reject(from_engine(ids.code(), ids.detail()));
  for (const auto id : ids.value())
    to.logit_bias.emplace_back(id, bias);
}

struct given_bias {
  value token; ///< an id or a text
  const value* bias;
};

std::vector<given_bias> read_bias_entries(fields& from, const value& given) {
  std::vector<given_bias> entries;
  if (const auto* object = given.as_object()) {
    for (const auto& [key, bias] : *object) {
      std::int64_t id = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      const bool is_id = error == std::errc{} && end == key.data() + key.size();
      entries.push_back({is_id ? value(id) : value(key), &bias});
    }
    return entries;
  }
  const auto* list = given.as_list();
  if (list == nullptr) {
    from.reject("logit_bias", "a list of pairs [token, bias], or an object", given);
    return entries;
  }
  for (const auto& pair : *list) {
    const auto* both = pair.as_list();
    if (both == nullptr || both->size() != 2) {
      from.reject("logit_bias[" + std::to_string(entries.size()) + "]", "a pair [token, bias]",
                  pair);
      return entries;
    }
    entries.push_back({both->front(), &both->back()});
  }
  return entries;
}

} // namespace

void read_completion_biases(fields& from, const codec_context& context,
                            config::sampling_params& to) {
  const auto* given = from.find("logit_bias");
  if (given == nullptr) return;
  const auto* list = given->as_list();
  const auto* object = given->as_object();
  if ((list != nullptr && list->size() > most_bias_entries) ||
      (object != nullptr && object->size() > most_bias_entries))
    return from.reject("logit_bias", "at most " + std::to_string(most_bias_entries) + " tokens",
                       *given);
  std::size_t bytes = 0;
  const auto entries = read_bias_entries(from, *given);
  for (std::size_t i = 0; i < entries.size() && from.ok(); ++i) {
    const auto name = "logit_bias[" + std::to_string(i) + "]";
    const auto bias = bias_of(from, name, *entries[i].bias);
    if (!bias.has_value()) return;
    if (const auto* text = entries[i].token.as_string()) {
      bytes += text->size();
      if (bytes > most_bias_text)
        return from.reject(
            "logit_bias",
            "of texts of at most " + std::to_string(most_bias_text) + " bytes together", *given);
      add_bias_of_text(from, context, *text, *bias, to);
      continue;
    }
    const auto id = as_integer(entries[i].token);
    if (!id.has_value() || *id < 0 || *id > std::numeric_limits<std::int32_t>::max())
      return from.reject(name, "a token id or a text, and a bias", entries[i].token);
    to.logit_bias.emplace_back(static_cast<std::int32_t>(*id), *bias);
  }
}

} // namespace twill::net
