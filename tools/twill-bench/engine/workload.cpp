#include "tools/twill-bench/engine/workload.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "tools/twill-bench/engine/random.hpp"

namespace twill::bench {
namespace {

constexpr int max_alignments = 10;

/// One token each in every byte-pair vocabulary we know, when a space stands before them.
constexpr std::array<std::string_view, 32> plain_words{
    " the",  " of",    " and",  " to",   " in",    " is",    " that", " for",
    " was",  " on",    " with", " as",   " it",    " be",    " at",   " by",
    " this", " from",  " have", " or",   " not",   " are",   " but",  " we",
    " all",  " which", " they", " more", " about", " other", " time", " people"};

std::int32_t draw_length(random_source& random, std::int32_t mean_tokens, double ratio) {
  const auto low = static_cast<std::int32_t>(std::floor(mean_tokens * (1.0 - ratio)));
  const auto high = static_cast<std::int32_t>(std::ceil(mean_tokens * (1.0 + ratio)));
  return static_cast<std::int32_t>(random.between(std::max(1, low), std::max(1, high)));
}

void append_ids(std::vector<std::int32_t>& ids, std::size_t n_ids,
                std::pair<std::int32_t, std::int32_t> range, random_source& random) {
  while (ids.size() < n_ids)
    ids.push_back(static_cast<std::int32_t>(random.between(range.first, range.second)));
}

/// Turns ids into a text that the server reads as (nearly) that many tokens; false without a
/// tokenizer on the server.
bool align_text(prompt& what, std::pair<std::int32_t, std::int32_t> range, token_service& tokens,
                random_source& random) {
  const auto wanted = what.ids.size();
  for (int turn = 0; turn < max_alignments; ++turn) {
    auto text = tokens.detokenize(what.ids);
    if (!text) return false;
    auto ids = tokens.tokenize(*text);
    if (!ids) return false;
    what.text = std::move(*text);
    what.input_tokens = static_cast<std::int32_t>(ids->size());
    if (ids->size() == wanted) break;
    ids->resize(std::min(ids->size(), wanted));
    append_ids(*ids, wanted, range, random);
    what.ids = std::move(*ids);
  }
  what.ids.clear();
  return true;
}

void write_words(prompt& what, random_source& random) {
  const std::size_t n_words = what.ids.size();
  what.ids.clear();
  for (std::size_t i = 0; i < n_words; ++i)
    what.text += plain_words[static_cast<std::size_t>(random.between(0, plain_words.size() - 1))];
}

workload random_workload(const workload_source& from, std::size_t n_prompts, std::uint64_t stream) {
  workload out;
  random_source random(from.options.seed * 0x9e3779b97f4a7c15ull + stream);
  const auto range = id_range(from.options, from.model);
  bool aligned = true;
  std::size_t missed = 0;
  for (std::size_t i = 0; i < n_prompts && !from.cancelled(); ++i) {
    prompt one;
    one.input_tokens = draw_length(random, from.options.input_tokens, from.options.range_ratio);
    one.output_tokens = draw_length(random, from.options.output_tokens, from.options.range_ratio);
    const std::int32_t wanted = one.input_tokens;
    append_ids(one.ids, static_cast<std::size_t>(wanted), range, random);
    if (!from.ids) {
      aligned = aligned && align_text(one, range, from.tokens, random);
      if (!aligned) write_words(one, random);
      missed += one.input_tokens != wanted;
    }
    out.prompts.push_back(std::move(one));
  }
  if (!aligned)
    out.remarks.push_back("the server has no /tokenize and /detokenize: prompts are plain words, "
                          "about one token each");
  if (missed > 0)
    out.remarks.push_back(std::to_string(missed) + " of " + std::to_string(n_prompts) +
                          " texts could not be aligned to their exact length");
  return out;
}

workload fixed_workload(const workload_source& from, std::size_t n_prompts) {
  prompt one;
  one.text = from.options.prompt;
  one.output_tokens = from.options.output_tokens;
  const auto ids = from.tokens.tokenize(one.text);
  one.input_tokens = ids ? static_cast<std::int32_t>(ids->size()) : 0;
  return {std::vector<prompt>(n_prompts, one), {}};
}

} // namespace

std::pair<std::int32_t, std::int32_t> id_range(const serve_options& options,
                                               const model_facts& model) {
  if (options.id_range) return *options.id_range;
  const std::int64_t vocab = model.vocab_size.value_or(32000);
  const std::int64_t low = std::min<std::int64_t>(1000, vocab / 4);
  const std::int64_t high = std::max(low, vocab * 9 / 10);
  return {static_cast<std::int32_t>(low), static_cast<std::int32_t>(high)};
}

workload make_workload(const workload_source& from, std::size_t n_prompts, std::uint64_t stream) {
  if (!from.options.prompt.empty()) return fixed_workload(from, n_prompts);
  if (from.options.dataset == "sharegpt") return sharegpt_workload(from, n_prompts, stream);
  return random_workload(from, n_prompts, stream);
}

} // namespace twill::bench
