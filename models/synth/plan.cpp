#include "models/synth/plan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace twill::models::synth {
namespace {

// Codes are 1..15 (1..255) with the middle twice as likely: no mean, these deviations.
constexpr double code_deviation_4 = 4.1833;
constexpr double code_deviation_8 = 73.611;

// Logits of this deviation are neither flat nor certain.
constexpr double logit_deviation = 3;

class planner {
public:
  explicit planner(const recipe& r) : r_(r) {
    dense_ = r.dtype == storage_type::f32   ? element::f32
             : r.dtype == storage_type::f16 ? element::f16
                                            : element::bf16;
  }

  std::vector<planned_tensor> build() {
    if (r_.family == "opt")
      opt();
    else if (r_.family == "qwen")
      qwen();
    else if (r_.family == "chatglm")
      chatglm();
    else
      llama_like();
    return std::move(tensors_);
  }

private:
  using size = std::int64_t;

  /// Values so scaled that inputs of unit size give outputs of unit size.
  void matrix(const std::string& module, size out, size in, double gain = 1) {
    add(module + ".weight", {out, in}, 0, gain / std::sqrt(static_cast<double>(in)));
  }

  /// A matrix that quantised checkpoints pack. `order`: whose input it shares.
  void packable(const std::string& module, size out, size in, const std::string& order) {
    if (r_.packed == packing::none) return matrix(module, out, in);
    packed_module m;
    m.name = module;
    m.kind = r_.packed;
    m.rows = out;
    m.cols = in;
    m.bits = r_.bits;
    m.group = r_.group < 0 ? in : r_.group;
    m.act_order = r_.packed == packing::gptq && r_.act_order;
    m.symmetric = r_.packed == packing::gptq && r_.symmetric;
    m.scale = 1 / std::sqrt(static_cast<double>(in)) /
              (m.bits == 4 ? code_deviation_4 : code_deviation_8);
    m.order_stream = order;
    pack(std::make_shared<const packed_module>(std::move(m)));
  }

  void pack(const std::shared_ptr<const packed_module>& m) {
    const size per_word = 32 / m->bits;
    const auto part = [&](const char* suffix, element type, content kind, std::vector<size> shape) {
      planned_tensor t;
      t.name = m->name + suffix;
      t.type = type;
      t.kind = kind;
      t.shape = std::move(shape);
      t.module = m;
      tensors_.push_back(std::move(t));
    };
    if (m->kind == packing::gptq) {
      part(".g_idx", element::i32, content::group_index, {m->cols});
      part(".qweight", element::i32, content::codes, {m->cols / per_word, m->rows});
    } else {
      part(".qweight", element::i32, content::codes, {m->cols, m->rows / per_word});
    }
    part(".qzeros", element::i32, content::zeros, {m->groups(), m->rows / per_word});
    part(".scales", element::f16, content::scales, {m->groups(), m->rows});
  }

  void add(const std::string& name, std::vector<size> shape, double mean, double deviation) {
    planned_tensor t;
    t.name = name;
    t.type = dense_;
    t.shape = std::move(shape);
    t.mean = mean;
    t.deviation = deviation;
    tensors_.push_back(std::move(t));
  }

  void norm(const std::string& name, double mean = 1) { add(name, {r_.hidden_size}, mean, 0.1); }
  void bias(const std::string& name, size n) { add(name, {n}, 0, 0.02); }

  void table(const std::string& name, size rows, size cols, bool is_head) {
    add(name, {rows, cols}, 0,
        is_head ? logit_deviation / std::sqrt(static_cast<double>(cols)) : 0.5);
  }

  void layer_norm(const std::string& module) {
    norm(module + ".weight");
    bias(module + ".bias", r_.hidden_size);
  }

  void opt() {
    const size h = r_.hidden_size, e = r_.embedding_size();
    const std::string base = "model.decoder.";
    table(base + "embed_tokens.weight", r_.vocab_size, e, true);
    add(base + "embed_positions.weight", {r_.context_length + 2, h}, 0, 0.2);
    if (e != h) {
      matrix(base + "project_in", h, e);
      matrix(base + "project_out", e, h);
    }
    if (r_.pre_norm) layer_norm(base + "final_layer_norm");
    for (std::int32_t i = 0; i < r_.n_layers; ++i) {
      const std::string at = base + "layers." + std::to_string(i) + ".";
      for (const char* part : {"q_proj", "k_proj", "v_proj"})
        biased(at + "self_attn." + part, h, h, at + "qkv");
      biased(at + "self_attn.out_proj", h, h, at + "o");
      layer_norm(at + "self_attn_layer_norm");
      biased(at + "fc1", r_.mlp_size, h, at + "up");
      biased(at + "fc2", h, r_.mlp_size, at + "down");
      layer_norm(at + "final_layer_norm");
    }
  }

  void biased(const std::string& module, size out, size in, const std::string& order) {
    packable(module, out, in, order);
    bias(module + ".bias", out);
  }

  /// Llama, Mistral, Qwen2, Qwen3 and Baichuan (which fuses q, k and v).
  void llama_like() {
    const size h = r_.hidden_size;
    const bool normalised_head = r_.family == "baichuan";
    table("model.embed_tokens.weight", r_.vocab_size, h, r_.tied_head);
    for (std::int32_t i = 0; i < r_.n_layers; ++i)
      llama_layer("model.layers." + std::to_string(i) + ".");
    // A head of unit rows has no scale of its own: the last norm gives the logits theirs.
    norm("model.norm.weight", normalised_head ? logit_deviation : 1);
    if (!r_.tied_head) table("lm_head.weight", r_.vocab_size, h, true);
  }

  void llama_layer(const std::string& at) {
    const size h = r_.hidden_size, d = r_.head_size();
    const size q = d * r_.n_heads, kv = d * r_.n_kv_heads;
    const std::string attention = at + "self_attn.";
    norm(at + "input_layernorm.weight");
    if (r_.family == "baichuan") {
      packable(attention + "W_pack", q + 2 * kv, h, at + "qkv");
    } else {
      const bool qkv_bias = r_.family == "qwen2" || r_.attention_bias;
      for (const auto& [part, out] :
           {std::pair<const char*, size>{"q_proj", q}, {"k_proj", kv}, {"v_proj", kv}}) {
        packable(attention + part, out, h, at + "qkv");
        if (qkv_bias) bias(attention + part + ".bias", out);
      }
    }
    packable(attention + "o_proj", h, q, at + "o");
    if (r_.attention_bias) bias(attention + "o_proj.bias", h);
    if (r_.family == "qwen3")
      for (const char* part : {"q_norm.weight", "k_norm.weight"})
        add(attention + part, {d}, 1, 0.1);
    norm(at + "post_attention_layernorm.weight");
    packable(at + "mlp.gate_proj", r_.mlp_size, h, at + "up");
    packable(at + "mlp.up_proj", r_.mlp_size, h, at + "up");
    packable(at + "mlp.down_proj", h, r_.mlp_size, at + "down");
  }

  void qwen() {
    const size h = r_.hidden_size, q = size{r_.head_size()} * r_.n_heads;
    table("transformer.wte.weight", r_.vocab_size, h, false);
    for (std::int32_t i = 0; i < r_.n_layers; ++i) {
      const std::string at = "transformer.h." + std::to_string(i) + ".";
      norm(at + "ln_1.weight");
      biased(at + "attn.c_attn", 3 * q, h, at + "qkv");
      packable(at + "attn.c_proj", h, q, at + "o");
      norm(at + "ln_2.weight");
      packable(at + "mlp.w1", r_.mlp_size, h, at + "up");
      packable(at + "mlp.w2", r_.mlp_size, h, at + "up");
      packable(at + "mlp.c_proj", h, r_.mlp_size, at + "down");
    }
    norm("transformer.ln_f.weight");
    table("lm_head.weight", r_.vocab_size, h, true);
  }

  void chatglm() {
    const size h = r_.hidden_size, d = r_.head_size();
    const size q = d * r_.n_heads, kv = d * r_.n_kv_heads;
    table("transformer.embedding.word_embeddings.weight", r_.vocab_size, h, false);
    add("transformer.rotary_pos_emb.inv_freq", {d / 4}, 10000 * r_.rope_ratio, 0);
    tensors_.back().kind = content::frequencies;
    for (std::int32_t i = 0; i < r_.n_layers; ++i) {
      const std::string at = "transformer.encoder.layers." + std::to_string(i) + ".";
      norm(at + "input_layernorm.weight");
      biased(at + "self_attention.query_key_value", q + 2 * kv, h, at + "qkv");
      packable(at + "self_attention.dense", h, q, at + "o");
      norm(at + "post_attention_layernorm.weight");
      packable(at + "mlp.dense_h_to_4h", size{2} * r_.mlp_size, h, at + "up");
      packable(at + "mlp.dense_4h_to_h", h, r_.mlp_size, at + "down");
    }
    norm("transformer.encoder.final_layernorm.weight");
    table("transformer.output_layer.weight", r_.vocab_size, h, true);
  }

  const recipe& r_;
  element dense_;
  std::vector<planned_tensor> tensors_;
};

} // namespace

std::int64_t bytes_of(element e) {
  return e == element::f16 || e == element::bf16 ? 2 : 4;
}

const char* name_of(element e) {
  switch (e) {
  case element::f32:
    return "F32";
  case element::f16:
    return "F16";
  case element::bf16:
    return "BF16";
  case element::i32:
    return "I32";
  }
  return "";
}

std::int64_t planned_tensor::row_values() const {
  std::int64_t n = 1;
  for (std::size_t i = 1; i < shape.size(); ++i)
    n *= shape[i];
  return n;
}

std::vector<planned_tensor> plan_tensors(const recipe& r) {
  return planner(r).build();
}

std::int64_t total_bytes(const std::vector<planned_tensor>& tensors) {
  std::int64_t sum = 0;
  for (const planned_tensor& t : tensors)
    sum += t.bytes();
  return sum;
}

} // namespace twill::models::synth
