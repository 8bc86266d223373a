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
  size_reader(const gguf::metadata& meta, const std::string& prefix)
      : meta_(&meta), prefix_(prefix + ".") {}

  void read(const char* key, std::int32_t& out) {
    keep(meta_->get_int(prefix_ + key, 1, int32_max), out);
  }
  void read_or(const char* key, std::int32_t fallback, std::int32_t& out) {
    keep(meta_->get_int_or(prefix_ + key, 0, int32_max, fallback), out);
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
  std::string prefix_;
  result<nothing> outcome_ = nothing{};
};

result<nothing> read_sizes(const gguf::metadata& meta, model_spec& spec) {
  size_reader sizes(meta, spec.family);
  sizes.read("block_count", spec.n_layers);
  sizes.read("context_length", spec.context_length);
  sizes.read("embedding_length", spec.hidden_size);
  sizes.read("feed_forward_length", spec.mlp_size);
  sizes.read("attention.head_count", spec.n_heads);
  sizes.read_or("attention.head_count_kv", spec.n_heads, spec.n_kv_heads);
  sizes.read_or("attention.sliding_window", 0, spec.window);
  if (!sizes.outcome().ok()) return sizes.outcome();
  sizes.read_or("attention.key_length", spec.hidden_size / spec.n_heads, spec.head_dim);
  sizes.read_or("rope.dimension_count", spec.head_dim, spec.rope.rotary_dim);
  std::int32_t value_length = spec.head_dim;
  std::int32_t n_experts = 0;
  sizes.read_or("attention.value_length", spec.head_dim, value_length);
  sizes.read_or("expert_count", 0, n_experts);
  if (!sizes.outcome().ok()) return sizes.outcome();
  if (value_length != spec.head_dim)
    return failure{errc::unsupported, "`attention.value_length` must equal the key length " +
                                          std::to_string(spec.head_dim) + ", got " +
                                          std::to_string(value_length)};
  if (n_experts > 0)
    return failure{errc::unsupported,
                   "`expert_count` must be 0 (mixtures of experts are not supported), got " +
                       std::to_string(n_experts)};
  return nothing{};
}

/// The factor that linear position scaling divides frequencies by; 1 without scaling.
result<double> linear_scaling(const gguf::metadata& meta, const std::string& prefix) {
  const std::string rope = prefix + ".rope.";
  auto type = meta.get_string_or(rope + "scaling.type", "none");
  if (!type.ok()) return type.error();
  // Files from before `scaling.type` have the factor under its older name alone.
  const std::string key =
      rope + (meta.has(rope + "scaling.factor") ? "scaling.factor" : "scale_linear");
  if (type.value() == "none" && !meta.has(rope + "scale_linear")) return 1.0;
  if (type.value() != "linear" && type.value() != "none")
    return failure{errc::unsupported, "`" + rope + "scaling.type` must be none or linear, got \"" +
                                          type.value() + "\""};
  auto factor = meta.get_float_or(key, 1.0);
  if (factor.ok() && factor.value() <= 0)
    return failure{errc::bad_metadata,
                   "`" + key + "` must be above 0, got " + std::to_string(factor.value())};
  return factor;
}

/// inv_freq[i] = base^(-2i / rotary_dim), divided by the linear factor and by the per-frequency
/// factors that Llama 3.1 files carry as a tensor.
result<nothing> read_rope(const gguf::metadata& meta, const checkpoint& weights, model_spec& spec) {
  const std::string base_key = spec.family + ".rope.freq_base";
  auto base = meta.get_float_or(base_key, 10000.0);
  if (!base.ok()) return base.error();
  if (base.value() <= 0)
    return failure{errc::bad_metadata,
                   "`" + base_key + "` must be above 0, got " + std::to_string(base.value())};
  auto scaling = linear_scaling(meta, spec.family);
  if (!scaling.ok()) return scaling.error();

  std::vector<float> factors;
  if (weights.find(spec.names.rope_factors) != nullptr) {
    auto read = weights.vector(spec.names.rope_factors);
    if (!read.ok()) return read.error();
    factors = std::move(read).value();
    if (factors.size() != static_cast<std::size_t>(spec.rope.rotary_dim / 2))
      return failure{errc::bad_tensor, "tensor `" + spec.names.rope_factors + "` must have " +
                                           std::to_string(spec.rope.rotary_dim / 2) +
                                           " values, got " + std::to_string(factors.size())};
  }
  // Converters reorder Llama's rows of Q and K so that rotary pairs lie next to each other.
  spec.rope.kind =
      spec.family == "llama" ? gpu::rope_kind::interleaved : gpu::rope_kind::half_split;
  for (std::int32_t i = 0; i < spec.rope.rotary_dim / 2; ++i) {
    double f = std::pow(base.value(), -2.0 * i / spec.rope.rotary_dim) / scaling.value();
    if (!factors.empty()) f /= factors[static_cast<std::size_t>(i)];
    spec.rope.inv_freq.push_back(static_cast<float>(f));
  }
  return nothing{};
}

} // namespace

result<model_spec> gguf_llama_spec(const gguf::metadata& meta, const checkpoint& weights) {
  auto architecture = meta.get_string("general.architecture");
  if (!architecture.ok()) return architecture.error();
  model_spec spec;
  spec.family = architecture.value();
  if (spec.family != "llama" && spec.family != "qwen2" && spec.family != "qwen3")
    return failure{errc::unsupported,
                   "`general.architecture` must be llama, qwen2 or qwen3, got \"" +
                       spec.family.substr(0, 200) + "\""};
  spec.names = gguf_names();
  if (spec.family == "qwen3") {
    spec.names.q_norm = "blk.{}.attn_q_norm.weight";
    spec.names.k_norm = "blk.{}.attn_k_norm.weight";
  }
  spec.qkv_bias = spec.o_bias = spec.mlp_bias = bias_rule::if_present;
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

  spec.embedding_size = spec.hidden_size;
  auto epsilon = meta.get_float(spec.family + ".attention.layer_norm_rms_epsilon");
  if (!epsilon.ok()) return epsilon.error();
  spec.norm_epsilon = static_cast<float>(epsilon.value());
  auto scale = meta.get_float_or(spec.family + ".attention.scale", 0);
  if (!scale.ok()) return scale.error();
  spec.attention_scale = scale.value() != 0 ? static_cast<float>(scale.value())
                                            : 1.0f / std::sqrt(static_cast<float>(spec.head_dim));
  // Bounded before the frequencies are listed: rotary_dim comes from the file.
  if (spec.rope.rotary_dim > spec.head_dim || spec.head_dim > 4096)
    return failure{
        errc::bad_metadata,
        "`" + spec.family + ".rope.dimension_count` must be at most the head size, got " +
            std::to_string(spec.rope.rotary_dim) + " and " + std::to_string(spec.head_dim)};
  if (auto rope = read_rope(meta, weights, spec); !rope.ok()) return rope.error();
  if (auto valid = validate(spec); !valid.ok()) return valid.error();
  return spec;
}

} // namespace twill::models::families
