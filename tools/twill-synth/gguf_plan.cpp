#include "tools/twill-synth/gguf_plan.hpp"

#include <utility>

#include "models/families/family.hpp"
#include "models/synth/family_recipe.hpp"

namespace twill::synth {
namespace {

/// Splits "model.layers.3.mlp.up_proj.weight" into "3" and "mlp.up_proj.weight".
std::pair<std::string, std::string> split_layer(const gguf_layout& layout,
                                                const std::string& name) {
  const std::size_t at = layout.layers.size(), dot = name.find('.', at);
  return {name.substr(at, dot - at), name.substr(dot + 1)};
}

/// The tensor's name in the GGUF file; empty for a tensor that GGUF files do not contain, such as a
/// table of rotary frequencies.
std::string gguf_name(const gguf_layout& layout, const std::string& name) {
  if (name == layout.embedding) return "token_embd.weight";
  if (name == layout.final_norm) return "output_norm.weight";
  if (name == layout.head) return "output.weight";
  if (!name.starts_with(layout.layers)) return {};
  const auto [layer, rest] = split_layer(layout, name);
  for (const auto& [ours, theirs] : layout.parts)
    if (rest.starts_with(ours))
      return "blk." + layer + "." + std::string(theirs) + rest.substr(ours.size());
  return {};
}

/// Splits a fused QKV matrix into three tensors.
void add_split_qkv(const recipe& r, const gguf_layout& layout, const planned_tensor& t,
                   std::vector<gguf_tensor>& out) {
  const std::string layer = split_layer(layout, t.name).first;
  const std::int64_t rows = t.rows() / 3;
  for (const auto& [part, index] : {std::pair<const char*, int>{"q", 0}, {"k", 1}, {"v", 2}}) {
    gguf_tensor part_tensor{"blk." + layer + ".attn_" + part + ".weight", t, index * rows, rows};
    if (index < 2 && layout.pairs_rotary_rows) part_tensor.paired_head = r.head_size();
    out.push_back(std::move(part_tensor));
  }
}

bool is_fused_qkv(const gguf_layout& layout, const std::string& name) {
  return !layout.fused_qkv.empty() && name.find(layout.fused_qkv) != std::string::npos;
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
  const std::string family(r.family->name);
  const gguf_layout* layout = r.family->recipe->gguf;
  if (layout == nullptr)
    return failure{errc::unsupported,
                   "GGUF is not for " + family + ": llama.cpp has no architecture for it"};
  if (!layout->any_head_size && r.head_size() * r.n_heads != r.hidden_size)
    return failure{errc::unsupported, "`head-dim` must be hidden / heads in a GGUF file of " +
                                          family + ", got " + std::to_string(r.head_size())};
  if (layout->check != nullptr)
    if (auto done = layout->check(r); !done.ok()) return done.error();
  return std::string(layout->architecture);
}

std::vector<gguf_tensor> plan_gguf(const recipe& r) {
  const gguf_layout& layout = *r.family->recipe->gguf;
  std::vector<gguf_tensor> all;
  for (planned_tensor& t : plan_tensors(r)) {
    if (is_fused_qkv(layout, t.name)) {
      add_split_qkv(r, layout, t, all);
      continue;
    }
    gguf_tensor tensor{gguf_name(layout, t.name), std::move(t)};
    if (tensor.name.empty()) continue;
    tensor.n_rows = tensor.source.rows();
    const bool rotates = tensor.name.find(".attn_q.") != std::string::npos ||
                         tensor.name.find(".attn_k.") != std::string::npos;
    if (rotates && layout.pairs_rotary_rows) tensor.paired_head = r.head_size();
    tensor.unit_rows = layout.unit_head_rows && tensor.name == "output.weight";
    all.push_back(std::move(tensor));
  }
  return all;
}

} // namespace twill::synth
