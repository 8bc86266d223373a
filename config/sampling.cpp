#include "config/sampling.hpp"

#include <cmath>
#include <cstdio>
#include <utility>

#include "config/options.hpp"

namespace twill::config {
namespace {

using checked = std::optional<breach>;

constexpr std::size_t most_biases = 1024;
constexpr std::size_t most_stop_ids = 1024;
constexpr std::size_t most_bad_words = 1024;
constexpr std::size_t longest_stop_bytes = 4096;

std::string shown(double x) {
  if (std::isnan(x)) return "nan";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

// Comparisons are written so that NaN fails them.
checked within(const char* field, float x, float low, float high) {
  if (x >= low && x <= high) return std::nullopt;
  return breach{field, "be between " + shown(low) + " and " + shown(high), shown(x)};
}

checked at_most(const char* field, std::int64_t given, std::int64_t most) {
  if (given <= most) return std::nullopt;
  return breach{field, "be at most " + std::to_string(most), std::to_string(given)};
}

checked count_at_most(const char* field, std::size_t given, std::size_t most) {
  if (given <= most) return std::nullopt;
  return breach{field, "have at most " + std::to_string(most) + " entries", std::to_string(given)};
}

checked token_in(const char* field, std::int32_t id, std::int32_t vocab_size) {
  if (id >= 0 && id < vocab_size) return std::nullopt;
  return breach{field, "be token ids between 0 and " + std::to_string(vocab_size - 1),
                std::to_string(id)};
}

checked check_distribution(const sampling_params& p) {
  if (auto c = within("temperature", p.temperature, 0, 100)) return c;
  if (p.top_k < -1) return breach{"top_k", "be -1 or more", std::to_string(p.top_k)};
  if (auto c = within("top_p", p.top_p, 0, 1)) return c;
  if (auto c = within("min_p", p.min_p, 0, 1)) return c;
  if (!(p.repetition_penalty > 0 && std::isfinite(p.repetition_penalty)))
    return breach{"repetition_penalty", "be above 0 and finite", shown(p.repetition_penalty)};
  if (auto c = within("presence_penalty", p.presence_penalty, -2, 2)) return c;
  return within("frequency_penalty", p.frequency_penalty, -2, 2);
}

checked check_length(const sampling_params& p) {
  if (p.max_tokens < -1) return breach{"max_tokens", "be at least 0", std::to_string(p.max_tokens)};
  if (p.min_tokens < 0) return breach{"min_tokens", "be at least 0", std::to_string(p.min_tokens)};
  if (p.max_tokens != -1 && p.min_tokens > p.max_tokens)
    return breach{"min_tokens", "be at most `max_tokens` (" + std::to_string(p.max_tokens) + ")",
                  std::to_string(p.min_tokens)};
  return std::nullopt;
}

checked check_biases(const sampling_params& p, std::int32_t vocab_size) {
  if (auto c = count_at_most("logit_bias", p.logit_bias.size(), most_biases)) return c;
  for (const auto& [id, bias] : p.logit_bias) {
    if (auto c = token_in("logit_bias", id, vocab_size)) return c;
    if (auto c = within("logit_bias", bias, -100, 100)) return c;
  }
  return std::nullopt;
}

checked check_words(const sampling_params& p, std::int32_t vocab_size) {
  if (auto c = count_at_most("bad_words", p.bad_words.size(), most_bad_words)) return c;
  for (const auto& text : p.bad_words) {
    if (text.empty()) return breach{"bad_words", "have no empty entry", "\"\""};
    if (text.size() > longest_stop_bytes)
      return breach{"bad_words",
                    "be a list of texts of at most " + std::to_string(longest_stop_bytes) +
                        " bytes",
                    "one of " + std::to_string(text.size())};
  }
  if (auto c = count_at_most("allowed_token_ids", p.allowed_token_ids.size(),
                             static_cast<std::size_t>(vocab_size)))
    return c;
  for (const auto id : p.allowed_token_ids)
    if (auto c = token_in("allowed_token_ids", id, vocab_size)) return c;
  return std::nullopt;
}

checked check_stops(const sampling_params& p, const limit_options& limits,
                    std::int32_t vocab_size) {
  if (auto c =
          count_at_most("stop", p.stop.size(), static_cast<std::size_t>(limits.max_stop_strings)))
    return c;
  for (const auto& text : p.stop) {
    if (text.empty()) return breach{"stop", "have no empty entry", "\"\""};
    if (text.size() > longest_stop_bytes)
      return breach{
          "stop", "be a list of texts of at most " + std::to_string(longest_stop_bytes) + " bytes",
          "one of " + std::to_string(text.size())};
  }
  if (auto c = count_at_most("stop_token_ids", p.stop_token_ids.size(), most_stop_ids)) return c;
  for (const auto id : p.stop_token_ids)
    if (auto c = token_in("stop_token_ids", id, vocab_size)) return c;
  return std::nullopt;
}

} // namespace

bool is_greedy(const sampling_params& params) {
  return params.temperature == 0 || params.top_p == 0;
}

void put_configured(const sampling_options& configured, sampling_params& defaults) {
  const std::pair<double, float*> numbers[] = {
      {configured.temperature, &defaults.temperature},
      {configured.top_p, &defaults.top_p},
      {configured.min_p, &defaults.min_p},
      {configured.repetition_penalty, &defaults.repetition_penalty},
  };
  for (const auto& [wish, target] : numbers)
    if (wish != -1) *target = static_cast<float>(wish);
  if (configured.top_k != -1) defaults.top_k = configured.top_k;
}

std::optional<breach> validate(const sampling_params& params, const limit_options& limits,
                               std::int32_t vocab_size) {
  if (auto c = check_distribution(params)) return c;
  if (auto c = check_length(params)) return c;
  if (auto c = check_biases(params, vocab_size)) return c;
  if (auto c = check_stops(params, limits, vocab_size)) return c;
  if (auto c = check_words(params, vocab_size)) return c;
  if (params.n < 1) return breach{"n", "be at least 1", std::to_string(params.n)};
  if (auto c = at_most("n", params.n, limits.max_choices)) return c;
  if (params.logprobs < -1)
    return breach{"logprobs", "be at least 0", std::to_string(params.logprobs)};
  return at_most("logprobs", params.logprobs, limits.max_logprobs);
}

} // namespace twill::config
