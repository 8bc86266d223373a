#include "models/offload/machine/layer_probe.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "config/base/least_seconds.hpp"
#include "models/decoder/decoder.hpp"
#include "models/decoder/gpu_error.hpp"
#include "models/offload/plan/plan_memory.hpp"

namespace twill::models::offload {
namespace {

constexpr std::int32_t prompt_rows = 256;
constexpr std::array<std::int32_t, 4> decodes = {1, 8, 32, 64};
constexpr std::int32_t readers = 8; ///< sequences with a context
constexpr std::int32_t context = 512;
constexpr std::int32_t block_tokens = 16;
constexpr std::int32_t vocabulary =
    64; ///< embedding and head are cut to this many rows, since they are not part of a layer

/// A checkpoint with only the first layer of another checkpoint and the first rows of its tables
/// (embedding and head).
class one_layer_checkpoint final : public checkpoint {
public:
  one_layer_checkpoint(const checkpoint& all, const model_spec& spec) : all_(all) {
    for (const std::string& name : {spec.names.embedding, spec.names.head})
      if (const auto* info = name.empty() ? nullptr : all.find(name)) {
        cut_.push_back(*info);
        cut_.back().shape[0] = std::min<std::int64_t>(vocabulary, cut_.back().shape[0]);
      }
    const std::string& any = spec.names.o;
    layers_ = any.substr(0, any.find("{}"));
  }
  std::vector<tensor_info> tensors() const override {
    std::vector<tensor_info> kept;
    for (tensor_info& info : all_.tensors())
      if (const auto* cut = cut_table(info.name))
        kept.push_back(*cut);
      else if (!info.name.starts_with(layers_) || info.name.starts_with(layers_ + "0."))
        kept.push_back(std::move(info));
    return kept;
  }
  const tensor_info* find(std::string_view name) const override {
    const auto* cut = cut_table(name);
    return cut != nullptr ? cut : all_.find(name);
  }
  result<gpu::weight_source> matrix(std::string_view name) const override {
    auto source = all_.matrix(name);
    const auto* cut = cut_table(name);
    if (!source.ok() || cut == nullptr) return source;
    source.value().rows = cut->shape[0];
    return source;
  }
  result<std::vector<float>> vector(std::string_view name) const override {
    return all_.vector(name);
  }

private:
  const tensor_info* cut_table(std::string_view name) const {
    for (const tensor_info& info : cut_)
      if (info.name == name) return &info;
    return nullptr;
  }

  const checkpoint& all_;
  std::vector<tensor_info> cut_; ///< the tensors of the tables
  std::string layers_;           ///< the common beginning of the names of all layer tensors
};

model_spec first_layer(model_spec spec) {
  spec.n_layers = 1;
  spec.vocab_size = std::min(spec.vocab_size, vocabulary);
  if (!spec.windowed.empty()) spec.windowed.resize(1);
  return spec;
}

/// A step of `sequences` sequences with `rows` rows each, which end at position `length`. Logits
/// are wanted for every row, because the last layer is computed only for rows with logits.
class probe_step {
public:
  probe_step(std::int32_t sequences, std::int32_t rows, std::int32_t length)
      : blocks_((length + block_tokens - 1) / block_tokens),
        tokens_(static_cast<std::size_t>(sequences * rows), 1),
        lengths_(static_cast<std::size_t>(sequences), length) {
    for (std::int32_t s = 0; s < sequences; ++s) {
      first_.push_back(s * rows);
      for (std::int32_t i = 0; i < rows; ++i)
        positions_.push_back(length - rows + i);
    }
    first_.push_back(sequences * rows);
    rows_.resize(tokens_.size());
    std::iota(rows_.begin(), rows_.end(), 0);
    table_.resize(static_cast<std::size_t>(sequences * blocks_));
    std::iota(table_.begin(), table_.end(), 0);
  }
  step_batch input() const {
    return {tokens_, positions_, first_, lengths_, table_, blocks_, rows_, lengths_, {}};
  }

private:
  std::int32_t blocks_; ///< of each sequence
  std::vector<std::int32_t> tokens_, positions_, first_, lengths_, rows_, table_;
};

} // namespace

result<nothing> probe_layer(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                            const compute_choice& types, const offload_model& shape,
                            double budget_s, machine_description& on) {
  const std::int32_t positions =
      spec.most_positions > 0 ? std::min(spec.most_positions, context) : context;
  decoder_options options;
  options.compute = types.compute;
  options.kv_type = types.kv_type;
  options.block_tokens = block_tokens;
  options.max_context_tokens = positions;
  options.max_step_tokens = prompt_rows;
  options.max_logit_rows = prompt_rows;
  options.max_sequences = decodes.back();
  options.n_blocks =
      std::max(decodes.back(), readers * ((positions + block_tokens - 1) / block_tokens));
  const one_layer_checkpoint first(weights, spec);
  auto loaded = decoder::load(dev, first_layer(spec), first, options, {});
  if (!loaded.ok()) return loaded.error();
  decoder& layer = *loaded.value();

  result<nothing> ran = nothing{};
  const auto seconds_of_step = [&](const probe_step& step) {
    return least_seconds_within(budget_s, [&] {
      if (auto done = layer.forward(step.input()); !done.ok()) ran = done.error();
      dev.fence();
    });
  };
  const std::int32_t rows = std::min(prompt_rows, positions);
  const double prompt_s = seconds_of_step(probe_step(1, rows, rows));
  on.layer.clear();
  for (const std::int32_t n : decodes)
    on.layer.push_back({static_cast<double>(n), seconds_of_step(probe_step(n, 1, 1))});
  const double long_s = seconds_of_step(probe_step(readers, 1, positions));
  const double short_s = seconds_of_step(probe_step(readers, 1, 1));
  if (!ran.ok()) return ran.error();

  const double h = shape.hidden_size, q = shape.q_size, kv = shape.kv_size;
  const double values = h * (q + 2 * kv) + q * h + (shape.gated_mlp ? 3 : 2) * h * shape.mlp_size;
  const double pairs = rows * rows / 2.0;
  const double flops = 2 * rows * values + 4 * q * pairs;
  on.device_flops = flops / prompt_s;
  if (rows > decodes.back())
    on.layer.push_back({static_cast<double>(rows), prompt_s * 2 * rows * values / flops});
  constexpr double least_s = 1e-6;
  on.device_kv_bytes_per_s = readers * (positions - 1) * kv_bytes_per_position(shape) /
                             std::max(long_s - short_s, least_s);
  return nothing{};
}

} // namespace twill::models::offload
