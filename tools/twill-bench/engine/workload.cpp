#include "tools/twill-bench/engine/workload.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "tools/twill-bench/engine/lengths.hpp"
#include "tools/twill-bench/engine/random.hpp"

namespace twill::bench {
namespace {

constexpr int max_alignments = 10;

/// Words that, with a space before them, are one token each in every byte-pair vocabulary we know.
constexpr std::array<std::string_view, 32> plain_words{
    " the",  " of",    " and",  " to",   " in",    " is",    " that", " for",
    " was",  " on",    " with", " as",   " it",    " be",    " at",   " by",
    " this", " from",  " have", " or",   " not",   " are",   " but",  " we",
    " all",  " which", " they", " more", " about", " other", " time", " people"};

void append_ids(std::vector<std::int32_t>& ids, std::size_t n_ids,
                std::pair<std::int32_t, std::int32_t> range, random_source& random) {
  while (ids.size() < n_ids)
    ids.push_back(static_cast<std::int32_t>(random.between(range.first, range.second)));
}

/// Turns the ids of `drawn` into a text that the server's tokenizer splits into (nearly) as many
/// tokens. Returns false when the server has no tokenizer.
bool align_text(prompt& drawn, std::pair<std::int32_t, std::int32_t> range, token_service& tokens,
                random_source& random) {
  const auto wanted = drawn.ids.size();
  for (int turn = 0; turn < max_alignments; ++turn) {
    auto text = tokens.detokenize(drawn.ids);
    if (!text) return false;
    auto ids = tokens.tokenize(*text);
    if (!ids) return false;
    drawn.text = std::move(*text);
    drawn.input_tokens = static_cast<std::int32_t>(ids->size());
    if (ids->size() == wanted) break;
    ids->resize(std::min(ids->size(), wanted));
    append_ids(*ids, wanted, range, random);
    drawn.ids = std::move(*ids);
  }
  drawn.ids.clear();
  return true;
}

void write_words(prompt& drawn, random_source& random) {
  const std::size_t n_words = drawn.ids.size();
  drawn.ids.clear();
  for (std::size_t i = 0; i < n_words; ++i)
    drawn.text += plain_words[static_cast<std::size_t>(random.between(0, plain_words.size() - 1))];
}

/// The ids that all prompts of a group begin with.
std::vector<std::int32_t> prefix_ids(const workload_source& from, std::size_t group,
                                     std::pair<std::int32_t, std::int32_t> range) {
  random_source random(from.options.seed * 0x9e3779b97f4a7c15ull + 0x70726566ull + (group << 32));
  std::vector<std::int32_t> ids;
  append_ids(ids, static_cast<std::size_t>(from.options.prefix_tokens), range, random);
  return ids;
}

/// Cuts a prompt that is longer than the model's context: first its output length, then its input
/// length. Returns whether it did.
bool cut_to_context(prompt& one, const model_facts& model) {
  if (!model.max_model_len || *model.max_model_len < 2) return false;
  const std::int64_t limit = *model.max_model_len;
  if (std::int64_t{one.input_tokens} + one.output_tokens <= limit) return false;
  one.input_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(one.input_tokens, limit - 1));
  one.output_tokens = static_cast<std::int32_t>(limit - one.input_tokens);
  return true;
}

/// Makes random prompts one after the other, and counts problems with their lengths.
class random_prompts {
public:
  random_prompts(const workload_source& from, std::uint64_t stream)
      : from_(from), random_(from.options.seed * 0x9e3779b97f4a7c15ull + stream),
        range_(id_range(from.options, from.model)) {
    if (from.options.prefix_tokens == 0) return;
    for (std::size_t group = 0; group < from.options.n_prefixes; ++group)
      prefixes_.push_back(prefix_ids(from, group, range_));
  }

  /// `follows` says that the prompt is a later turn of a conversation, which begins with no prefix.
  prompt next(bool follows) {
    const serve_options& o = from_.options;
    const length_kind kind{o.range_ratio, o.length_cv};
    prompt one;
    one.follows = follows;
    one.input_tokens = draw_length(random_, o.input_tokens, kind);
    one.output_tokens = draw_length(random_, o.output_tokens, kind);
    if (!follows && !prefixes_.empty()) {
      const auto last = static_cast<std::int64_t>(prefixes_.size()) - 1;
      one.ids = prefixes_[static_cast<std::size_t>(random_.between(0, last))];
      one.input_tokens += o.prefix_tokens;
    }
    // Only randomly drawn lengths are cut. With fixed lengths, the user should see the request
    // fail.
    if (kind.cv > 0) cut_ += cut_to_context(one, from_.model);
    const std::int32_t wanted = one.input_tokens;
    one.ids.resize(std::min(one.ids.size(), static_cast<std::size_t>(wanted)));
    append_ids(one.ids, static_cast<std::size_t>(wanted), range_, random_);
    if (!from_.ids) {
      aligned_ = aligned_ && align_text(one, range_, from_.tokens, random_);
      if (!aligned_) write_words(one, random_);
      missed_ += one.input_tokens != wanted;
    }
    return one;
  }

  std::vector<std::string> remarks(std::size_t n_prompts) const {
    const std::string of_all = " of " + std::to_string(n_prompts);
    std::vector<std::string> out;
    if (!aligned_)
      out.emplace_back("the server has no /tokenize and /detokenize: prompts are plain words, "
                       "about one token each");
    if (missed_ > 0)
      out.push_back(std::to_string(missed_) + of_all +
                    " texts could not be aligned to their exact length");
    if (cut_ > 0)
      out.push_back(std::to_string(cut_) + of_all + " drawn lengths were cut to the context limit");
    return out;
  }

private:
  const workload_source& from_;
  random_source random_;
  std::pair<std::int32_t, std::int32_t> range_;
  std::vector<std::vector<std::int32_t>> prefixes_;
  bool aligned_ = true;
  std::size_t missed_ = 0, cut_ = 0;
};

workload random_workload(const workload_source& from, std::size_t n_prompts, std::uint64_t stream) {
  workload out;
  random_prompts source(from, stream);
  for (std::size_t i = 0; i < n_prompts && !from.cancelled(); ++i)
    out.prompts.push_back(source.next(i % std::max<std::size_t>(1, from.options.n_turns) != 0));
  out.remarks = source.remarks(n_prompts);
  return out;
}

workload fixed_workload(const workload_source& from, std::size_t n_prompts) {
  prompt one;
  one.text = from.options.prompt;
  one.output_tokens = from.options.output_tokens;
  const auto ids = from.tokens.tokenize(one.text);
  one.input_tokens = ids ? static_cast<std::int32_t>(ids->size()) : 0;
  return {std::vector<prompt>(n_prompts, one), {}, {}};
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
  if (from.options.dataset == "trace" && stream == measured_prompts)
    return trace_workload(from, n_prompts, stream);
  if (from.options.dataset == "sharegpt") return sharegpt_workload(from, n_prompts, stream);
  return random_workload(from, n_prompts, stream);
}

} // namespace twill::bench
