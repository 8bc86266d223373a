#include "actors/executor/device_sampler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "config/base/assert.hpp"

namespace twill::actors {

namespace {

/// True if the draw is the token with the largest logit and nothing else is asked for.
bool is_plain_greedy(const draw_spec& d) {
  return config::is_greedy(*d.params) && d.params->logprobs < 0 && d.counts.empty() &&
         d.biases.empty() && d.mask.empty();
}

gpu::sample_row row_of(const draw_spec& d) {
  const auto& p = *d.params;
  gpu::sample_row row;
  row.temperature = config::is_greedy(p) ? 0 : p.temperature;
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

/// Sets in `args` which kinds of sampling at least one row asks for.
void tell_needs(std::span<const draw_spec> draws, gpu::sample_args& args) {
  args.any_draw = args.any_top_k = args.any_top_p = false;
  for (const draw_spec& d : draws)
    gpu::add_needs(row_of(d), args);
}

/// One pass of the sampler has room for this many token counts (for penalties) and biases per row
/// of logits, on average, and for this many masks (bitmaps of the tokens that may be drawn). Rows
/// that do not fit are drawn in further passes.
constexpr std::size_t counts_per_row = 256, biases_per_row = 64, most_masks = 64;

/// The average numbers of penalties and biases per row for which a step's payload has room.
constexpr std::size_t carried_counts_per_row = 64, carried_biases_per_row = 16;

template <class T>
std::size_t bytes_of(const std::vector<T>& items) {
  return items.size() * sizeof(T);
}

template <class T>
std::size_t room_of(const gpu::buffer& place) {
  return place.bytes() / sizeof(T);
}

template <class T>
void upload(gpu::device& dev, gpu::buffer& place, const std::vector<T>& items) {
  TWILL_ASSERT(items.size() <= room_of<T>(place),
               "what a step uploads fits the array that was made for it");
  if (!items.empty()) dev.upload(place.data(), items.data(), items.size() * sizeof(T));
}

/// How many items a sampler's arrays hold.
struct array_sizes {
  std::size_t rows, counts, biases, mask_words, result_bytes;

  array_sizes(std::int32_t max_rows, std::int32_t max_top, std::int32_t vocab_size)
      : rows(static_cast<std::size_t>(max_rows)) {
    const auto vocab = static_cast<std::size_t>(vocab_size);
    const auto tops = rows * static_cast<std::size_t>(std::max(max_top, 0));
    // At least one row fits: each token is counted once, biased once and banned once.
    counts = std::max(vocab, rows * counts_per_row);
    biases = std::max(2 * vocab, rows * biases_per_row);
    mask_words = std::min(rows, most_masks) * ((vocab + 31) / 32);
    result_bytes = 3 * rows * sizeof(float) + 2 * tops * sizeof(float);
  }
};

} // namespace

std::int64_t device_sampler::array_bytes(std::int32_t max_rows, std::int32_t max_top,
                                         std::int32_t vocab_size) {
  const array_sizes n(max_rows, max_top, vocab_size);
  return static_cast<std::int64_t>(
      n.rows * sizeof(gpu::sample_row) + n.result_bytes + n.counts * sizeof(gpu::token_count) +
      n.biases * sizeof(gpu::token_bias) + n.mask_words * sizeof(std::uint32_t));
}

std::int64_t device_sampler::scratch_bytes(const gpu::device& dev, std::int32_t max_rows,
                                           std::int32_t max_top, std::int32_t vocab_size) {
  return gpu::sampling_scratch_bytes(dev, max_rows, vocab_size, true, max_top);
}

gpu::result<device_sampler> device_sampler::create(gpu::device& dev, std::int32_t max_rows,
                                                   std::int32_t max_top, std::int32_t vocab_size) {
  device_sampler s;
  s.max_top_ = std::max(max_top, 0);
  const array_sizes n(max_rows, max_top, vocab_size);
  const std::int64_t scratch = scratch_bytes(dev, max_rows, max_top, vocab_size);
  if (auto reserved = dev.reserve_scratch(static_cast<std::size_t>(scratch)); !reserved.ok())
    return reserved.error();
  s.host_rows_.reserve(n.rows);
  s.host_counts_.reserve(n.counts);
  s.host_biases_.reserve(n.biases);
  s.host_masks_.reserve(n.mask_words);
  s.description_.reserve(static_cast<std::size_t>(most_described_bytes(max_rows)));
  const std::pair<gpu::buffer*, std::size_t> wanted[] = {
      {&s.rows_, n.rows * sizeof(gpu::sample_row)},
      {&s.results_, n.result_bytes},
      {&s.counts_, n.counts * sizeof(gpu::token_count)},
      {&s.biases_, n.biases * sizeof(gpu::token_bias)},
      {&s.masks_, n.mask_words * sizeof(std::uint32_t)}};
  for (const auto& [place, bytes] : wanted) {
    auto memory = dev.allocate(bytes, "sampling");
    if (!memory.ok()) return memory.error();
    *place = std::move(memory).value();
  }
  auto fetched = gpu::host_buffer::allocate(most_launched * n.result_bytes, "drawn tokens");
  if (!fetched.ok()) return fetched.error();
  s.fetched_ = std::move(fetched).value();
  s.fetch_end_ = std::make_unique<gpu::marker>();
  auto ring = gpu::pinned_ring::create(n.mask_words * sizeof(std::uint32_t), "masks");
  if (!ring.ok()) return ring.error();
  s.mask_ring_ = std::move(ring).value();
  return gpu::result<device_sampler>(std::move(s));
}

device_sampler::result_arrays device_sampler::arrays_in(void* memory, std::size_t n,
                                                        std::int32_t columns) const {
  const std::size_t tops = n * static_cast<std::size_t>(columns);
  result_arrays r{};
  r.scores = static_cast<float*>(memory);
  r.tokens = reinterpret_cast<std::int32_t*>(r.scores + n);
  r.logprobs = reinterpret_cast<float*>(r.tokens + n);
  r.top_ids = reinterpret_cast<std::int32_t*>(r.logprobs + n);
  r.top_logprobs = reinterpret_cast<float*>(r.top_ids + tops);
  r.end = reinterpret_cast<unsigned char*>(r.top_logprobs + tops);
  return r;
}

std::int64_t device_sampler::most_described_bytes(std::int32_t max_rows) {
  return max_rows * static_cast<std::int64_t>(sizeof(gpu::sample_row) +
                                              carried_counts_per_row * sizeof(gpu::token_count) +
                                              carried_biases_per_row * sizeof(gpu::token_bias));
}

std::span<const unsigned char> device_sampler::describe(std::span<const draw_spec> draws,
                                                        const unsigned char* at) {
  described_rows_ = 0;
  std::size_t bytes = draws.size() * sizeof(gpu::sample_row), masks = 0;
  for (const draw_spec& d : draws) {
    bytes += d.counts.size_bytes() + d.biases.size_bytes();
    masks += d.mask.size();
  }
  if (std::all_of(draws.begin(), draws.end(), is_plain_greedy) || bytes > description_.capacity() ||
      masks > room_of<std::uint32_t>(masks_))
    return {};
  static_assert(sizeof(gpu::sample_row) % alignof(gpu::token_count) == 0 &&
                sizeof(gpu::token_count) % alignof(gpu::token_bias) == 0);
  describe_rows(draws);
  const unsigned char* counts = at + bytes_of(host_rows_);
  point_rows(draws, reinterpret_cast<const gpu::token_count*>(counts),
             reinterpret_cast<const gpu::token_bias*>(counts + bytes_of(host_counts_)));
  description_.resize(bytes);
  unsigned char* to = description_.data();
  const auto put = [&to](const auto& items) {
    if (!items.empty()) std::memcpy(to, items.data(), bytes_of(items));
    to += bytes_of(items);
  };
  put(host_rows_);
  put(host_counts_);
  put(host_biases_);
  described_rows_ = draws.size();
  described_at_ = at;
  return description_;
}

gpu::result<nothing> device_sampler::draw(gpu::device& dev, gpu::tensor_ref logits,
                                          std::span<const draw_spec> draws, step_samples& out) {
  if (auto launched = launch(dev, logits, draws); !launched.ok()) return launched;
  fetch_end_->record(dev);
  if (auto ended = fetch_end_->wait(); !ended.ok()) return ended;
  collect(out);
  return nothing{};
}

gpu::result<nothing> device_sampler::launch(gpu::device& dev, gpu::tensor_ref logits,
                                            std::span<const draw_spec> draws) {
  TWILL_ASSERT(n_launched_ - n_collected_ < most_launched,
               "draws are collected before others take their place");
  const std::size_t n = draws.size();
  const bool described = std::exchange(described_rows_, 0) == n;
  const bool any_logprobs = std::any_of(draws.begin(), draws.end(),
                                        [](const draw_spec& d) { return d.params->logprobs >= 0; });
  const std::int32_t columns = any_logprobs ? max_top_ : 0;
  const result_arrays on_device = arrays_in(results_.data(), n, columns);
  drawn_ = on_device.tokens;
  if (std::all_of(draws.begin(), draws.end(), is_plain_greedy)) {
    gpu::argmax(dev, logits, on_device.tokens);
  } else {
    gpu::sample_args args;
    args.any_logprobs = any_logprobs;
    args.max_top = columns;
    tell_needs(draws, args);
    for (std::size_t first = 0; first < n;) {
      const std::size_t rows = described ? n : n_fitting(draws.subspan(first));
      if (described) {
        if (auto sent = send_masks(dev, draws); !sent.ok()) return sent;
        args.rows = reinterpret_cast<const gpu::sample_row*>(described_at_);
      } else {
        upload_rows(dev, draws.subspan(first, rows));
        args.rows = static_cast<const gpu::sample_row*>(rows_.data());
      }
      const std::size_t top = first * static_cast<std::size_t>(columns);
      args.logits = gpu::view_2d(
          logits.as<float>() + static_cast<std::int64_t>(first) * logits.row_stride,
          gpu::dtype::f32, static_cast<std::int64_t>(rows), logits.shape[1], logits.row_stride);
      args.tokens = on_device.tokens + first;
      args.logprobs = on_device.logprobs + first;
      args.top_ids = on_device.top_ids + top;
      args.top_logprobs = on_device.top_logprobs + top;
      gpu::sample(dev, args);
      first += rows;
    }
  }
  const void* end = any_logprobs ? static_cast<const void*>(on_device.end) : on_device.logprobs;
  fetch(dev, on_device.tokens, end);
  launched_[n_launched_++ % most_launched] = {n, columns, any_logprobs};
  return nothing{};
}

void device_sampler::collect(step_samples& out) {
  TWILL_ASSERT(n_collected_ < n_launched_, "draws are launched before they are collected");
  const launched_draws& step = launched_[n_collected_ % most_launched];
  const result_arrays here = arrays_in(fetched_by(n_collected_), step.rows, step.columns);
  ++n_collected_;
  out.tokens.assign(here.tokens, here.tokens + step.rows);
  out.max_top = step.columns;
  if (!step.any_logprobs) return;
  const std::size_t tops = step.rows * static_cast<std::size_t>(step.columns);
  out.logprobs.assign(here.logprobs, here.logprobs + step.rows);
  out.top_ids.assign(here.top_ids, here.top_ids + tops);
  out.top_logprobs.assign(here.top_logprobs, here.top_logprobs + tops);
}

/// Sends the masks. They are filled while the step runs, so they are sent separately.
gpu::result<nothing> device_sampler::send_masks(gpu::device& dev,
                                                std::span<const draw_spec> draws) {
  std::size_t words = 0;
  for (const draw_spec& d : draws)
    words += d.mask.size();
  if (words == 0) return nothing{};
  auto slot = mask_ring_.begin();
  if (!slot.ok()) return slot.error();
  auto* to = reinterpret_cast<std::uint32_t*>(slot.value());
  for (const draw_spec& d : draws)
    to = std::copy(d.mask.begin(), d.mask.end(), to);
  dev.enqueue_upload(masks_.data(), slot.value(), words * sizeof(std::uint32_t));
  mask_ring_.end(dev);
  return nothing{};
}

void device_sampler::fetch(gpu::device& dev, const void* from, const void* to) {
  const auto* first = static_cast<const unsigned char*>(from);
  const auto offset = first - static_cast<const unsigned char*>(results_.data());
  dev.enqueue_download(fetched_by(n_launched_) + offset, first,
                       static_cast<std::size_t>(static_cast<const unsigned char*>(to) - first));
}

/// The number of these rows that fit the arrays in one pass; at least one does.
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

/// Fills the host's arrays; the pointers of the rows are not set yet.
void device_sampler::describe_rows(std::span<const draw_spec> draws) {
  host_rows_.clear();
  host_counts_.clear();
  host_biases_.clear();
  for (const draw_spec& d : draws) {
    host_rows_.push_back(row_of(d));
    host_counts_.insert(host_counts_.end(), d.counts.begin(), d.counts.end());
    host_biases_.insert(host_biases_.end(), d.biases.begin(), d.biases.end());
  }
}

/// Points the rows to their parts of the device's arrays.
void device_sampler::point_rows(std::span<const draw_spec> draws, const gpu::token_count* counts,
                                const gpu::token_bias* biases) {
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
}

void device_sampler::upload_rows(gpu::device& dev, std::span<const draw_spec> draws) {
  describe_rows(draws);
  host_masks_.clear();
  for (const draw_spec& d : draws)
    host_masks_.insert(host_masks_.end(), d.mask.begin(), d.mask.end());
  point_rows(draws, static_cast<const gpu::token_count*>(counts_.data()),
             static_cast<const gpu::token_bias*>(biases_.data()));
  upload(dev, masks_, host_masks_);
  upload(dev, counts_, host_counts_);
  upload(dev, biases_, host_biases_);
  upload(dev, rows_, host_rows_);
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
    // the drawn token does not matter here; greedy rows do not change the logits
    row.temperature = 0;
    row.n_top = std::min(s.n_top, max_top_);
    host_rows_.push_back(row);
    out.score_max_top = std::max(out.score_max_top, row.n_top);
  }
  const result_arrays on_device = arrays_in(results_.data(), n, out.score_max_top);
  dev.upload(on_device.tokens, host_ids_.data(), n * sizeof(std::int32_t));
  gpu::token_logprobs(dev, logits, on_device.tokens, on_device.scores);
  if (out.score_max_top > 0) {
    upload(dev, rows_, host_rows_);
    gpu::sample_args args;
    args.logits = logits;
    args.rows = static_cast<const gpu::sample_row*>(rows_.data());
    args.any_logprobs = true;
    args.any_draw = false;
    args.max_top = out.score_max_top;
    args.tokens = on_device.tokens;
    args.logprobs = on_device.logprobs;
    args.top_ids = on_device.top_ids;
    args.top_logprobs = on_device.top_logprobs;
    gpu::sample(dev, args);
  }
  const void* end =
      out.score_max_top > 0 ? static_cast<const void*>(on_device.end) : on_device.tokens;
  fetch(dev, on_device.scores, end);
  fetch_end_->record(dev);
  if (auto ended = fetch_end_->wait(); !ended.ok()) return ended;
  const result_arrays here = arrays_in(fetched_by(n_launched_), n, out.score_max_top);
  out.score_logprobs.assign(here.scores, here.scores + n);
  const std::size_t tops = n * static_cast<std::size_t>(out.score_max_top);
  if (tops == 0) return nothing{};
  out.score_top_ids.assign(here.top_ids, here.top_ids + tops);
  out.score_top_logprobs.assign(here.top_logprobs, here.top_logprobs + tops);
  return nothing{};
}

} // namespace twill::actors
