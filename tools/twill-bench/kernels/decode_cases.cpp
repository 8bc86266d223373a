#include <cmath>
#include <iterator>
#include <numeric>
#include <span>

#include "gpu/attention/attention.hpp"
#include "tools/twill-bench/kernels/device_memory.hpp"
#include "tools/twill-bench/kernels/row_cases.hpp"
#include "tools/twill-bench/kernels/seed_layers.hpp"

namespace twill::bench {

namespace {

using gpu::dtype;

/// A case with only its op and shape filled in.
kernel_case named(const seed_layer& seed, std::int32_t length, std::int32_t sequences, dtype type) {
  kernel_case c;
  c.op = std::string("decode attention ") + seed.name + " " + gpu::name_of(type);
  c.shape = std::to_string(sequences) + " x " + std::to_string(length) + " positions, " +
            std::to_string(seed.n_heads) + "/" + std::to_string(seed.n_kv_heads) + " heads of " +
            std::to_string(seed.head_dim);
  return c;
}

/// Sequences of one length that each decode a token. Successive runs use different buffers of KV,
/// queries and outputs in turn, so that no buffer is still in a cache.
class decode_step {
public:
  decode_step(gpu::device& dev, const kernel_selection& selection, const seed_layer& seed,
              std::int32_t length, std::int32_t sequences, dtype type)
      : dev_(dev), seed_(seed), length_(length), sequences_(sequences), type_(type),
        blocks_((length + block_tokens - 1) / block_tokens) {
    turns_ = turns_of(selection, bytes());
    kv_positions_ = std::int64_t{blocks_} * sequences * seed.n_kv_heads * block_tokens;
    kv_bytes_ = kv_positions_ * seed.head_dim * static_cast<std::int64_t>(gpu::size_of(type));
    keys_ = filled(dev, kv_bytes_ * turns_, 0x11);
    values_ = filled(dev, kv_bytes_ * turns_, 0x11);
    if (type == dtype::i8) scales_ = device_floats(dev, kv_positions_ * turns_, 0.01F);

    row_ = std::int64_t{seed.n_heads} * seed.head_dim;
    q_ = device_floats(dev, row_ * sequences * turns_, 0.1F);
    out_ = device_floats(dev, row_ * sequences * turns_, 0);
    if (seed.alibi) slopes_ = device_floats(dev, seed.n_heads, 0.05F);
    make_batch();
  }

  /// Fills in the case. It must not outlive this decode_step.
  kernel_case measured(kernel_case c) {
    c.bytes = bytes();
    c.operations = 4.0 * sequences_ * length_ * seed_.n_heads * seed_.head_dim;
    c.compute = gpu::compute_type::bf16;
    c.turn = turns_;
    c.run = [this] { run(); };
    return c;
  }

private:
  double bytes() const {
    const double per_position = 2.0 * seed_.n_kv_heads *
                                (seed_.head_dim * static_cast<double>(gpu::size_of(type_)) +
                                 (type_ == dtype::i8 ? 4.0 : 0.0));
    return sequences_ * (length_ * per_position + 8.0 * seed_.n_heads * seed_.head_dim);
  }

  void make_batch() {
    const auto n = static_cast<std::size_t>(sequences_);
    std::vector<std::int32_t> each(n), first(n + 1), table(n * static_cast<std::size_t>(blocks_));
    std::iota(each.begin(), each.end(), 0);
    std::iota(first.begin(), first.end(), 0);
    // Backwards, so that neighbours in time are not neighbours in memory.
    std::iota(table.rbegin(), table.rend(), 0);
    arrays_.push_back(to_device(dev_, std::vector<std::int32_t>(n, length_ - 1)));
    arrays_.push_back(to_device(dev_, each));
    arrays_.push_back(to_device(dev_, first));
    arrays_.push_back(to_device(dev_, std::vector<std::int32_t>(n, length_)));
    arrays_.push_back(to_device(dev_, table));
    const auto array = [this](std::size_t i) {
      return static_cast<const std::int32_t*>(arrays_[i].data());
    };
    batch_ = {sequences_, sequences_, blocks_, array(0), array(1), array(2), array(3), array(4)};
  }

  void run() {
    const std::int64_t turn = turn_++ % turns_;
    gpu::attention_args args;
    args.q = q_.matrix(sequences_, row_, turn * sequences_ * row_);
    args.out = out_.matrix(sequences_, row_, turn * sequences_ * row_);
    args.kv.keys = static_cast<char*>(keys_.data()) + turn * kv_bytes_;
    args.kv.values = static_cast<char*>(values_.data()) + turn * kv_bytes_;
    args.kv.type = type_;
    args.kv.n_blocks = blocks_ * sequences_;
    args.kv.n_kv_heads = seed_.n_kv_heads;
    args.kv.block_tokens = block_tokens;
    args.kv.head_dim = seed_.head_dim;
    if (type_ == dtype::i8)
      args.kv.key_scales = args.kv.value_scales = scales_.data() + turn * kv_positions_;
    args.n_heads = seed_.n_heads;
    args.scale = 1 / std::sqrt(static_cast<float>(seed_.head_dim));
    if (seed_.alibi) args.alibi_slopes = slopes_.data();
    args.bf16_products = true;
    gpu::attention(dev_, batch_, args);
  }

  gpu::device& dev_;
  const seed_layer& seed_;
  std::int32_t length_, sequences_;
  dtype type_;
  std::int32_t blocks_; ///< of one sequence
  std::int32_t turns_ = 1;
  std::int64_t kv_positions_ = 0; ///< of all KV heads together
  std::int64_t kv_bytes_ = 0;     ///< of the keys, and as many of the values, in one turn
  std::int64_t row_ = 0;          ///< number of floats in a row of queries
  gpu::buffer keys_, values_;
  device_floats scales_, q_, out_, slopes_;
  std::vector<gpu::buffer> arrays_;
  gpu::ragged_batch batch_;
  std::int64_t turn_ = 0;
};

} // namespace

void for_each_decode_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(const kernel_case&)>& measure) {
  const std::span<const seed_layer> seeds =
      selection.small ? std::span<const seed_layer>(small_seed_layers) : seed_layers;
  const std::vector<std::int32_t> lengths =
      selection.small ? std::vector<std::int32_t>{40} : std::vector<std::int32_t>{512, 2048, 4096};
  for (const seed_layer& seed : seeds)
    for (const dtype type : {dev.info().half_kv, dtype::i8})
      for (const std::int32_t length : lengths)
        for (const std::int32_t sequences : {1, 32}) {
          const kernel_case c = named(seed, length, sequences, type);
          if (selected(selection, c))
            where_memory_suffices(c.op + " " + c.shape, [&] {
              decode_step step(dev, selection, seed, length, sequences, type);
              measure(step.measured(c));
            });
        }
}

} // namespace twill::bench
