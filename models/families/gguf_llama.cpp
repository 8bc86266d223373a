#include "models/families/gguf_llama.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace twill::models::families {
namespace {

constexpr std::int64_t int32_max = std::numeric_limits<std::int32_t>::max();

tensor_names gguf_names() {
  tensor_names n;
  n.embedding = "token_embd.weight";
  n.head = "output.weight";
  n.final_norm = "output_norm.weight";
  n.rope_factors = "rope_freqs.weight";
  n.attention_norm = "blk.{}.attn_norm.weight";
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

/// Reads sizes and remembers the first failure, so that the list of fields stays a list.
class size_reader {
public:
  explicit size_reader(const gguf::metadata& meta) : meta_(&meta) {}

  void read(const char* key, std::int32_t& out) { keep(meta_->get_int(key, 1, int32_max), out); }
  void read_or(const char* key, std::int32_t fallback, std::int32_t& out) {
    keep(meta_->get_int_or(key, 0, int32_max, fallback), out);
  }
  const result<nothing>& outcome() const { return outcome_; }

private:
  void keep(const result<std::int64_t>& value, std::int32_t& out) {
    if (value.ok())
      out = static_cast<std::int32_t>(value.value());
    else if (outcome_.ok())
      outcome_ = value.error();
  }

  const gguf::metadata* meta_;
  result<nothing> outcome_ = nothing{};
};

result<nothing> read_sizes(const gguf::metadata& meta, model_spec& spec) {
  size_reader sizes(meta);
  sizes.read("llama.block_count", spec.n_layers);
  sizes.read("llama.context_length", spec.context_length);
  sizes.read("llama.embedding_length", spec.hidden_size);
  sizes.read("llama.feed_forward_length", spec.mlp_size);
  sizes.read("llama.attention.head_count", spec.n_heads);
  sizes.read_or("llama.attention.head_count_kv", spec.n_heads, spec.n_kv_heads);
  sizes.read_or("llama.attention.sliding_window", 0, spec.window);
  if (!sizes.outcome().ok()) return sizes.outcome();
  sizes.read_or("llama.attention.key_length", spec.hidden_size / spec.n_heads, spec.head_dim);
  sizes.read_or("llama.rope.dimension_count", spec.head_dim, spec.rotary_dim);
  std::int32_t value_length = spec.head_dim;
  std::int32_t n_experts = 0;
  sizes.read_or("llama.attention.value_length", spec.head_dim, value_length);
  sizes.read_or("llama.expert_count", 0, n_experts);
  if (!sizes.outcome().ok()) return sizes.outcome();
  if (value_length != spec.head_dim)
    return failure{errc::unsupported, "`llama.attention.value_length` must equal the key length " +
                                          std::to_string(spec.head_dim) + ", got " +
                                          std::to_string(value_length)};
  if (n_experts > 0)
    return failure{errc::unsupported,
                   "`llama.expert_count` must be 0 (mixtures of experts are not supported), got " +
                       std::to_string(n_experts)};
  return nothing{};
}

/// The factor that linear position scaling divides frequencies by; 1 without scaling.
result<double> linear_scaling(const gguf::metadata& meta) {
  auto type = meta.get_string_or("llama.rope.scaling.type", "none");
  if (!type.ok()) return type.error();
  // Files from before `scaling.type` have the factor under its older name alone.
  const char* key = meta.has("llama.rope.scaling.factor") ? "llama.rope.scaling.factor"
                                                          : "llama.rope.scale_linear";
  if (type.value() == "none" && !meta.has("llama.rope.scale_linear")) return 1.0;
  if (type.value() != "linear" && type.value() != "none")
    return failure{errc::unsupported, "`llama.rope.scaling.type` must be none or linear, got \"" +
                                          type.value() + "\""};
  auto factor = meta.get_float_or(key, 1.0);
  if (factor.ok() && factor.value() <= 0)
    return failure{errc::bad_metadata, "`" + std::string(key) + "` must be above 0, got " +
                                           std::to_string(factor.value())};
  return factor;
}

/// inv_freq[i] = base^(-2i / rotary_dim), divided by the linear factor and by the per-frequency
/// factors that Llama 3.1 files carry as a tensor.
result<nothing> read_rope(const gguf::metadata& meta, const checkpoint& weights, model_spec& spec) {
  auto base = meta.get_float_or("llama.rope.freq_base", 10000.0);
  if (!base.ok()) return base.error();
  if (base.value() <= 0)
    return failure{errc::bad_metadata,
                   "`llama.rope.freq_base` must be above 0, got " + std::to_string(base.value())};
  auto scaling = linear_scaling(meta);
  if (!scaling.ok()) return scaling.error();

  std::vector<float> factors;
  if (weights.find(spec.names.rope_factors) != nullptr) {
    auto read = weights.vector(spec.names.rope_factors);
    if (!read.ok()) return read.error();
    factors = std::move(read).value();
    if (factors.size() != static_cast<std::size_t>(spec.rotary_dim / 2))
      return failure{errc::bad_tensor, "tensor `" + spec.names.rope_factors + "` must have " +
                                           std::to_string(spec.rotary_dim / 2) + " values, got " +
                                           std::to_string(factors.size())};
  }
  spec.rope = gpu::rope_kind::interleaved;
  for (std::int32_t i = 0; i < spec.rotary_dim / 2; ++i) {
    double f = std::pow(base.value(), -2.0 * i / spec.rotary_dim) / scaling.value();
    if (!factors.empty()) f /= factors[static_cast<std::size_t>(i)];
    spec.inv_freq.push_back(static_cast<float>(f));
  }
  return nothing{};
}

} // namespace

result<model_spec> gguf_llama_spec(const gguf::metadata& meta, const checkpoint& weights) {
  model_spec spec;
  spec.family = "llama";
  spec.names = gguf_names();
  if (auto sizes = read_sizes(meta, spec); !sizes.ok()) return sizes.error();

  const tensor_info* embedding = weights.find(spec.names.embedding);
  if (embedding == nullptr)
    return failure{errc::missing_tensor,
                   "tensor `" + spec.names.embedding + "` is not in the file"};
  if (embedding->shape.front() > int32_max)
    return failure{errc::bad_tensor, "tensor `" + spec.names.embedding + "` has too many rows: " +
                                         std::to_string(embedding->shape.front())};
  spec.vocab_size = static_cast<std::int32_t>(embedding->shape.front());
  spec.tied_head = weights.find(spec.names.head) == nullptr;

  auto epsilon = meta.get_float("llama.attention.layer_norm_rms_epsilon");
  if (!epsilon.ok()) return epsilon.error();
  spec.norm_epsilon = static_cast<float>(epsilon.value());
  auto scale = meta.get_float_or("llama.attention.scale", 0);
  if (!scale.ok()) return scale.error();
  spec.attention_scale = scale.value() != 0 ? static_cast<float>(scale.value())
                                            : 1.0f / std::sqrt(static_cast<float>(spec.head_dim));
  // Bounded before the frequencies are listed: rotary_dim comes from the file.
  if (spec.rotary_dim > spec.head_dim || spec.head_dim > 4096)
    return failure{errc::bad_metadata,
                   "`llama.rope.dimension_count` must be at most the head size, got " +
                       std::to_string(spec.rotary_dim) + " and " + std::to_string(spec.head_dim)};
  if (auto rope = read_rope(meta, weights, spec); !rope.ok()) return rope.error();
  if (auto valid = validate(spec); !valid.ok()) return valid.error();
  return spec;
}

} // namespace twill::models::families
