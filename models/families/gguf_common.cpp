#include "models/families/gguf_common.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "models/families/common.hpp"
#include "models/families/gguf_scaling.hpp"

namespace twill::models::families {
namespace {

constexpr std::int32_t most_head_values = 4096; // the upper bound that validate() checks

/// Reads Llama 3.1's factors, one per frequency, from a tensor of the file; empty if the file has
/// no such tensor.
std::vector<float> read_rope_factors(gguf_reader& file, const checkpoint& weights,
                                     const model_spec& spec) {
  const std::string& name = spec.names.rope_factors;
  if (name.empty() || weights.find(name) == nullptr) return {};
  auto read = weights.vector(name);
  if (!read.ok()) {
    file.fail(read.code(), read.detail());
    return {};
  }
  const auto n = static_cast<std::size_t>(spec.rope.rotary_dim / 2);
  if (read.value().size() != n) {
    file.fail(errc::bad_tensor, "tensor `" + name + "` must have " + std::to_string(n) +
                                    " values, got " + std::to_string(read.value().size()));
    return {};
  }
  return std::move(read).value();
}

} // namespace

tensor_names gguf_names(const checkpoint& weights) {
  tensor_names n;
  n.embedding = "token_embd.weight";
  n.head = "output.weight";
  n.final_norm = "output_norm.weight";
  n.attention_norm = "blk.{}.attn_norm.weight";
  const std::string qkv = "blk.{}.attn_qkv.weight";
  if (weights.find(layer_tensor(qkv, 0)) != nullptr) n.qkv = qkv;
  n.q = "blk.{}.attn_q.weight";
  n.k = "blk.{}.attn_k.weight";
  n.v = "blk.{}.attn_v.weight";
  n.o = "blk.{}.attn_output.weight";
  n.mlp_norm = "blk.{}.ffn_norm.weight";
  n.gate = "blk.{}.ffn_gate.weight";
  n.up = "blk.{}.ffn_up.weight";
  n.down = "blk.{}.ffn_down.weight";
  return n;
}

void read_gguf_sizes(gguf_reader& file, model_spec& spec) {
  spec.n_layers = file.size("block_count");
  spec.context_length = file.size("context_length");
  spec.hidden_size = spec.embedding_size = file.size("embedding_length");
  spec.mlp_size = file.size("feed_forward_length");
  spec.n_heads = file.size("attention.head_count");
  spec.n_kv_heads = file.size_or("attention.head_count_kv", spec.n_heads);
  spec.head_dim = file.size_or("attention.key_length", spec.hidden_size / spec.n_heads);
  spec.rope.rotary_dim = file.size_or("rope.dimension_count", spec.head_dim);
  spec.norm_epsilon = static_cast<float>(file.number("attention.layer_norm_rms_epsilon"));
  set_attention_scale(spec);
  const std::int32_t value_length = file.size_or("attention.value_length", spec.head_dim);
  if (value_length != spec.head_dim)
    file.fail(errc::unsupported, file.quoted("attention.value_length") +
                                     " must equal the key length " + std::to_string(spec.head_dim) +
                                     ", got " + std::to_string(value_length));
  if (const std::int32_t n = file.size_or("expert_count", 0); n > 0)
    file.fail(errc::unsupported, file.quoted("expert_count") +
                                     " must be 0 (mixtures of experts are not supported), got " +
                                     std::to_string(n));
}

void read_gguf_vocabulary(gguf_reader& file, const checkpoint& weights, bool may_be_tied,
                          model_spec& spec) {
  const std::string& name = spec.names.embedding;
  const tensor_info* embedding = weights.find(name);
  if (embedding == nullptr)
    return file.fail(errc::missing_tensor, "tensor `" + name + "` is not in the file");
  if (embedding->shape.front() > std::numeric_limits<std::int32_t>::max())
    return file.fail(errc::bad_tensor, "tensor `" + name + "` has too many rows: " +
                                           std::to_string(embedding->shape.front()));
  spec.vocab_size = static_cast<std::int32_t>(embedding->shape.front());
  spec.tied_head = may_be_tied && weights.find(spec.names.head) == nullptr;
}

void read_gguf_rotary(gguf_reader& file, const checkpoint& weights, gpu::rope_kind kind,
                      model_spec& spec) {
  const std::int32_t n = spec.rope.rotary_dim;
  // `n` comes from the file, so it is checked before the list of frequencies is made.
  if (n > spec.head_dim || spec.head_dim > most_head_values)
    return file.fail(errc::bad_metadata,
                     file.quoted("rope.dimension_count") + " must be at most the head size, got " +
                         std::to_string(n) + " and " + std::to_string(spec.head_dim));
  const double base = file.number_or("rope.freq_base", 10000);
  if (base <= 0)
    return file.fail(errc::bad_metadata, file.quoted("rope.freq_base") + " must be above 0, got " +
                                             std::to_string(base));
  const std::vector<float> factors = read_rope_factors(file, weights, spec);
  std::vector<double> freq;
  for (std::int32_t i = 0; i < n / 2; ++i) {
    freq.push_back(std::pow(base, -2.0 * i / n));
    if (!factors.empty()) freq.back() /= factors[static_cast<std::size_t>(i)];
  }
  read_gguf_scaling(file, base, spec, freq);
  spec.rope.kind = kind;
  spec.rope.inv_freq.assign(freq.begin(), freq.end());
}

result<model_spec> finished(const gguf_reader& file, model_spec spec) {
  if (!file.ok()) return file.outcome().error();
  if (auto valid = validate(spec); !valid.ok()) return valid.error();
  return spec;
}

} // namespace twill::models::families
