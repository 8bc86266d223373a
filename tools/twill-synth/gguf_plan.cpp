#include "tools/twill-synth/gguf_plan.hpp"

#include <cstring>
#include <span>
#include <utility>

namespace twill::synth {
namespace {

using name_pair = std::pair<const char*, const char*>;

constexpr name_pair llama_parts[] = {
    {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"}, {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};
constexpr name_pair qwen_parts[] = {
    {"ln_1", "attn_norm"},      {"attn.c_attn", "attn_qkv"}, {"attn.c_proj", "attn_output"},
    {"ln_2", "ffn_norm"},       {"mlp.w2", "ffn_gate"},      {"mlp.w1", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
};
constexpr name_pair chatglm_parts[] = {
    {"input_layernorm", "attn_norm"},        {"self_attention.query_key_value", "attn_qkv"},
    {"self_attention.dense", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
    {"mlp.dense_h_to_4h", "ffn_up"},         {"mlp.dense_4h_to_h", "ffn_down"},
};

/// What a family calls its tensors.
struct naming {
  const char* embedding;
  const char* final_norm;
  const char* head;
  const char* layers; ///< stands before the layer's number
  std::span<const name_pair> parts;
};

constexpr naming llama_naming = {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight",
                                 "model.layers.", llama_parts};
constexpr naming qwen_naming = {"transformer.wte.weight", "transformer.ln_f.weight",
                                "lm_head.weight", "transformer.h.", qwen_parts};
constexpr naming chatglm_naming = {
    "transformer.embedding.word_embeddings.weight", "transformer.encoder.final_layernorm.weight",
    "transformer.output_layer.weight", "transformer.encoder.layers.", chatglm_parts};

const naming& naming_of(const recipe& r) {
  return r.family == "qwen" ? qwen_naming : r.family == "chatglm" ? chatglm_naming : llama_naming;
}

/// "model.layers.3.mlp.up_proj.weight": "3" and "mlp.up_proj.weight".
std::pair<std::string, std::string> split_layer(const naming& names, const std::string& name) {
  const std::size_t at = std::strlen(names.layers), dot = name.find('.', at);
  return {name.substr(at, dot - at), name.substr(dot + 1)};
}

/// Empty for a tensor that GGUF files lack (a table of frequencies).
std::string gguf_name(const naming& names, const std::string& name) {
  if (name == names.embedding) return "token_embd.weight";
  if (name == names.final_norm) return "output_norm.weight";
  if (name == names.head) return "output.weight";
  if (!name.starts_with(names.layers)) return {};
  const auto [layer, rest] = split_layer(names, name);
  for (const auto& [ours, theirs] : names.parts)
    if (rest.starts_with(ours))
      return "blk." + layer + "." + theirs + rest.substr(std::strlen(ours));
  return {};
}

/// Rows of Q and K change places for architectures that rotate neighbours.
bool pairs_apart(const recipe& r) {
  return r.family == "llama" || r.family == "mistral" || r.family == "baichuan";
}

/// Baichuan's one matrix becomes three.
void add_split_qkv(const recipe& r, const planned_tensor& t, std::vector<gguf_tensor>& out) {
  const std::string layer = split_layer(llama_naming, t.name).first;
  const std::int64_t rows = t.rows() / 3;
  for (const auto& [part, index] : {std::pair<const char*, int>{"q", 0}, {"k", 1}, {"v", 2}}) {
    gguf_tensor made{"blk." + layer + ".attn_" + part + ".weight", t, index * rows, rows};
    if (index < 2) made.paired_head = r.head_size();
    out.push_back(std::move(made));
  }
}

} // namespace

std::int64_t gguf_tensor::source_row(std::int64_t row) const {
  if (paired_head == 0) return first_row + row;
  const std::int64_t in_head = row % paired_head;
  return first_row + row - in_head + in_head % 2 * (paired_head / 2) + in_head / 2;
}

result<std::string> gguf_architecture(const recipe& r) {
  if (r.packed != packing::none)
    return failure{errc::unsupported, "GGUF holds no GPTQ or AWQ weights: use --quant none and "
                                      "--gguf-kind Q4_0, Q4_1 or Q8_0"};
  if (r.family == "llama" || r.family == "mistral") return std::string("llama");
  if (r.family == "qwen2" || r.family == "qwen3") return r.family;
  if (r.family == "opt")
    return failure{errc::unsupported, "GGUF is not for opt: llama.cpp has no architecture for it"};
  if (r.head_size() * r.n_heads != r.hidden_size)
    return failure{errc::unsupported, "`head-dim` must be hidden / heads in a GGUF file of " +
                                          r.family + ", got " + std::to_string(r.head_size())};
  // llama.cpp tells Baichuan's position kind by these; others would have no positions at all.
  if (const std::int32_t layers = r.alibi ? 40 : 32; r.family == "baichuan" && r.n_layers != layers)
    return failure{errc::unsupported, "`layers` must be " + std::to_string(layers) +
                                          " in a GGUF file of baichuan with " +
                                          (r.alibi ? "ALiBi" : "rotary positions") + ", got " +
                                          std::to_string(r.n_layers)};
  return r.family;
}

std::vector<gguf_tensor> plan_gguf(const recipe& r) {
  const naming& names = naming_of(r);
  std::vector<gguf_tensor> all;
  for (planned_tensor& t : plan_tensors(r)) {
    if (t.name.find(".W_pack.") != std::string::npos) {
      add_split_qkv(r, t, all);
      continue;
    }
    gguf_tensor made{gguf_name(names, t.name), std::move(t)};
    if (made.name.empty()) continue;
    made.n_rows = made.source.rows();
    const bool rotates = made.name.find(".attn_q.") != std::string::npos ||
                         made.name.find(".attn_k.") != std::string::npos;
    if (rotates && pairs_apart(r)) made.paired_head = r.head_size();
    // llama.cpp multiplies by Baichuan2's head as it is.
    made.unit_rows = r.family == "baichuan" && made.name == "output.weight";
    all.push_back(std::move(made));
  }
  return all;
}

} // namespace twill::synth
