#include "actors/executor/device_sampler.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "config/base/assert.hpp"

namespace twill::actors {

namespace {

/// True when the token is the one with the largest logit, and nothing else is asked for.
bool is_plain_greedy(const draw_spec& d) {
  return d.params->temperature == 0.0f && d.params->logprobs < 0 && d.counts.empty() &&
         d.biases.empty() && d.mask.empty();
}

gpu::sample_row row_of(const draw_spec& d) {
  const auto& p = *d.params;
  gpu::sample_row row;
  row.temperature = p.temperature;
  row.top_k = std::max(p.top_k, 0);
  row.top_p = p.top_p;
  row.min_p = p.min_p;
  row.repetition_penalty = p.repetition_penalty;
  row.presence_penalty = p.presence_penalty;
  row.frequency_penalty = p.frequency_penalty;
  row.seed = d.seed;
  row.counter = d.counter;
  row.n_counts = static_cast<std::int32_t>(d.counts.size());
  row.n_biases = static_cast<std::int32_t>(d.biases.size());
  row.n_top = p.logprobs;
  return row;
}

/// Rows of a step that may have as many penalties and biases as these numbers, and masks, in one
/// pass; further rows take further passes.
constexpr std::size_t counts_per_row = 256, biases_per_row = 64, most_masks = 64;

template <class T>
std::size_t room_of(const gpu::buffer& place) {
  return place.bytes() / sizeof(T);
}

template <class T>
void upload(gpu::device& dev, gpu::buffer& place, const std::vector<T>& items) {
  if (!items.empty()) dev.upload(place.data(), items.data(), items.size() * sizeof(T));
}

} // namespace

gpu::result<device_sampler> device_sampler::create(gpu::device& dev, std::int32_t max_rows,
                                                   std::int32_t max_top, std::int32_t vocab_size) {
  device_sampler s;
  s.max_top_ = std::max(max_top, 0);
  const auto rows = static_cast<std::size_t>(max_rows);
  const auto tops = rows * static_cast<std::size_t>(s.max_top_);
  const auto vocab = static_cast<std::size_t>(vocab_size);
  // One row fits in any case: each token is counted once, biased once and banned once.
  const std::size_t counts = std::max(vocab, rows * counts_per_row);
  const std::size_t biases = std::max(2 * vocab, rows * biases_per_row);
  const std::size_t masks = std::min(rows, most_masks) * ((vocab + 31) / 32);
  // Log-probabilities copy a row for each thread: that memory, too, is taken before the first step.
  dev.scratch(std::min(rows, static_cast<std::size_t>(dev.info().threads)) * vocab * sizeof(float));
  s.host_rows_.reserve(rows);
  s.host_counts_.reserve(counts);
  s.host_biases_.reserve(biases);
  s.host_masks_.reserve(masks);
  const std::pair<gpu::buffer*, std::size_t> wanted[] = {
      {&s.rows_, rows * sizeof(gpu::sample_row)},
      {&s.tokens_, rows * sizeof(std::int32_t)},
      {&s.logprobs_, rows * sizeof(float)},
      {&s.top_ids_, tops * sizeof(std::int32_t)},
      {&s.top_logprobs_, tops * sizeof(float)},
      {&s.counts_, counts * sizeof(gpu::token_count)},
      {&s.biases_, biases * sizeof(gpu::token_bias)},
      {&s.masks_, masks * sizeof(std::uint32_t)}};
  for (const auto& [place, bytes] : wanted) {
    auto memory = dev.allocate(bytes, "sampling");
    if (!memory.ok()) return memory.error();
    *place = std::move(memory).value();
  }
  return s;
}

gpu::result<nothing> device_sampler::draw(gpu::device& dev, gpu::tensor_ref logits,
                                          std::span<const draw_spec> draws, step_samples& out) {
  const std::size_t n = draws.size();
  if (std::all_of(draws.begin(), draws.end(), is_plain_greedy)) {
    gpu::argmax(dev, logits, static_cast<std::int32_t*>(tokens_.data()));
    download(dev, n, false, out);
    return nothing{};
  }
  const bool any_logprobs = std::any_of(draws.begin(), draws.end(),
                                        [](const draw_spec& d) { return d.params->logprobs >= 0; });
  for (std::size_t first = 0; first < n;) {
    if (first > 0) dev.fence(); // the arrays of the pass before are still being read
    const std::size_t rows = n_fitting(draws.subspan(first));
    upload_rows(dev, draws.subspan(first, rows));
    const std::size_t top = first * static_cast<std::size_t>(max_top_);
    gpu::sample_args args;
    args.logits = gpu::view_2d(
        logits.as<float>() + static_cast<std::int64_t>(first) * logits.row_stride, gpu::dtype::f32,
        static_cast<std::int64_t>(rows), logits.shape[1], logits.row_stride);
    args.rows = static_cast<const gpu::sample_row*>(rows_.data());
    args.any_logprobs = any_logprobs;
    args.max_top = max_top_;
    args.tokens = static_cast<std::int32_t*>(tokens_.data()) + first;
    args.logprobs = static_cast<float*>(logprobs_.data()) + first;
    args.top_ids = static_cast<std::int32_t*>(top_ids_.data()) + top;
    args.top_logprobs = static_cast<float*>(top_logprobs_.data()) + top;
    gpu::sample(dev, args);
    first += rows;
  }
  download(dev, n, any_logprobs, out);
  return nothing{};
}

/// How many of these rows fit the arrays in one pass; at least one does.
std::size_t device_sampler::n_fitting(std::span<const draw_spec> draws) const {
  std::size_t counts = room_of<gpu::token_count>(counts_);
  std::size_t biases = room_of<gpu::token_bias>(biases_);
  std::size_t masks = room_of<std::uint32_t>(masks_);
  std::size_t rows = 0;
  for (const draw_spec& d : draws) {
    if (d.counts.size() > counts || d.biases.size() > biases || d.mask.size() > masks) break;
    counts -= d.counts.size();
    biases -= d.biases.size();
    masks -= d.mask.size();
    ++rows;
  }
  TWILL_ASSERT(rows > 0, "one row has at most one count, bias and ban per token");
  return rows;
}

void device_sampler::upload_rows(gpu::device& dev, std::span<const draw_spec> draws) {
  host_rows_.clear();
  host_counts_.clear();
  host_biases_.clear();
  host_masks_.clear();
  for (const draw_spec& d : draws) {
    host_rows_.push_back(row_of(d));
    host_counts_.insert(host_counts_.end(), d.counts.begin(), d.counts.end());
    host_biases_.insert(host_biases_.end(), d.biases.begin(), d.biases.end());
    host_masks_.insert(host_masks_.end(), d.mask.begin(), d.mask.end());
  }
  upload(dev, masks_, host_masks_);
  upload(dev, counts_, host_counts_);
  upload(dev, biases_, host_biases_);
  const auto* counts = static_cast<const gpu::token_count*>(counts_.data());
  const auto* biases = static_cast<const gpu::token_bias*>(biases_.data());
  const auto* masks = static_cast<const std::uint32_t*>(masks_.data());
  for (std::size_t i = 0; i < draws.size(); ++i) {
    gpu::sample_row& row = host_rows_[i];
    row.counts = counts;
    row.biases = biases;
    if (row.n_counts > 0) counts += row.n_counts;
    if (row.n_biases > 0) biases += row.n_biases;
    if (draws[i].mask.empty()) continue;
    row.mask = masks;
    masks += draws[i].mask.size();
  }
  dev.upload(rows_.data(), host_rows_.data(), host_rows_.size() * sizeof(gpu::sample_row));
}

gpu::result<nothing> device_sampler::score(gpu::device& dev, gpu::tensor_ref logits,
                                           std::span<const score_spec> scores, step_samples& out) {
  const std::size_t n = scores.size();
  host_ids_.clear();
  host_rows_.clear();
  out.score_max_top = 0;
  for (const score_spec& s : scores) {
    host_ids_.push_back(s.token);
    gpu::sample_row row;
    row.temperature = 0; // what is drawn does not matter; greedy rows leave the logits alone
    row.n_top = std::min(s.n_top, max_top_);
    host_rows_.push_back(row);
    out.score_max_top = std::max(out.score_max_top, row.n_top);
  }
  auto* tokens = static_cast<std::int32_t*>(tokens_.data());
  auto* logprobs = static_cast<float*>(logprobs_.data());
  dev.upload(tokens, host_ids_.data(), n * sizeof(std::int32_t));
  gpu::token_logprobs(dev, logits, tokens, logprobs);
  dev.fence();
  out.score_logprobs.resize(n);
  dev.download(out.score_logprobs.data(), logprobs, n * sizeof(float));
  if (out.score_max_top == 0) return nothing{};
  dev.upload(rows_.data(), host_rows_.data(), n * sizeof(gpu::sample_row));
  gpu::sample_args args;
  args.logits = logits;
  args.rows = static_cast<const gpu::sample_row*>(rows_.data());
  args.any_logprobs = true;
  args.max_top = out.score_max_top;
  args.tokens = tokens;
  args.logprobs = logprobs;
  args.top_ids = static_cast<std::int32_t*>(top_ids_.data());
  args.top_logprobs = static_cast<float*>(top_logprobs_.data());
  gpu::sample(dev, args);
  dev.fence();
  const std::size_t tops = n * static_cast<std::size_t>(out.score_max_top);
  out.score_top_ids.resize(tops);
  out.score_top_logprobs.resize(tops);
  dev.download(out.score_top_ids.data(), top_ids_.data(), tops * sizeof(std::int32_t));
  dev.download(out.score_top_logprobs.data(), top_logprobs_.data(), tops * sizeof(float));
  return nothing{};
}

void device_sampler::download(gpu::device& dev, std::size_t n, bool logprobs,
                              step_samples& out) const {
  dev.fence();
  out.tokens.resize(n);
  dev.download(out.tokens.data(), tokens_.data(), n * sizeof(std::int32_t));
  out.max_top = logprobs ? max_top_ : 0;
  if (!logprobs) return;
  const std::size_t tops = n * static_cast<std::size_t>(max_top_);
  out.logprobs.resize(n);
  out.top_ids.resize(tops);
  out.top_logprobs.resize(tops);
  dev.download(out.logprobs.data(), logprobs_.data(), n * sizeof(float));
  dev.download(out.top_ids.data(), top_ids_.data(), tops * sizeof(std::int32_t));
  dev.download(out.top_logprobs.data(), top_logprobs_.data(), tops * sizeof(float));
}

} // namespace twill::actors
