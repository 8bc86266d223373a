// GGUF version 3: the same model as the recipe's folder, under GGUF's names. The llama architecture
// stores rows of Q and K with rotary pairs side by side, so these rows change places.
#include <algorithm>
#include <cstring>
#include <optional>

#include "models/synth/fill.hpp"
#include "models/synth/gguf_kinds.hpp"
#include "models/synth/gguf_metadata.hpp"
#include "models/synth/write.hpp"

namespace twill::models::synth {
namespace {

constexpr std::int64_t alignment = 32;
constexpr std::int64_t chunk_values = 1 << 18;

std::int64_t aligned(std::int64_t n) {
  return (n + alignment - 1) / alignment * alignment;
}

result<std::string> architecture_of(const recipe& r) {
  if (r.packed != packing::none)
    return failure{errc::unsupported, "GGUF holds no GPTQ or AWQ weights: use --quant none and "
                                      "--gguf-kind Q4_0, Q4_1 or Q8_0"};
  if (r.family == "llama" || r.family == "mistral") return std::string("llama");
  if (r.family == "qwen2" || r.family == "qwen3") return r.family;
  return failure{errc::unsupported,
                 "GGUF is written for llama, mistral, qwen2 and qwen3, not for " + r.family};
}

result<const gguf_kind*> kind_of(const recipe& r, const write_options& options) {
  const std::string name = !options.gguf_kind.empty()     ? options.gguf_kind
                           : r.dtype == storage_type::f32 ? "F32"
                           : r.dtype == storage_type::f16 ? "F16"
                                                          : "BF16";
  const gguf_kind* kind = find_gguf_kind(name);
  if (kind == nullptr)
    return failure{errc::unsupported,
                   "the GGUF kind must be F32, F16, BF16, Q8_0, Q4_0 or Q4_1, got " + name};
  return kind;
}

std::string gguf_name(const std::string& name) {
  if (name == "model.embed_tokens.weight") return "token_embd.weight";
  if (name == "model.norm.weight") return "output_norm.weight";
  if (name == "lm_head.weight") return "output.weight";
  constexpr std::pair<const char*, const char*> parts[] = {
      {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"}, {"post_attention_layernorm", "ffn_norm"},
      {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
  };
  const std::string prefix = "model.layers.";
  const std::size_t dot = name.find('.', prefix.size());
  const std::string rest = name.substr(dot + 1);
  for (const auto& [ours, theirs] : parts)
    if (rest.starts_with(ours))
      return "blk." + name.substr(prefix.size(), dot - prefix.size()) + "." + theirs +
             rest.substr(std::strlen(ours));
  return name;
}

/// One tensor on its way into the file.
class converter {
public:
  converter(const recipe& r, const planned_tensor& t, const gguf_kind& matrices)
      : tensor_(t), filler_(t, r.seed),
        kind_(t.shape.size() == 1 ? *find_gguf_kind("F32") : matrices) {
    const bool pairs_apart = r.family == "llama" || r.family == "mistral";
    const bool rotates = t.name.find(".q_proj.") != std::string::npos ||
                         t.name.find(".k_proj.") != std::string::npos;
    if (pairs_apart && rotates) head_dim_ = r.head_size();
  }

  const gguf_kind& kind() const { return kind_; }
  std::int64_t values() const { return tensor_.rows() * tensor_.row_values(); }
  std::int64_t bytes() const { return values() / kind_.block_values * kind_.block_bytes; }

  template <class Sink>
  result<nothing> stream(const Sink& sink) const {
    const std::int64_t width = tensor_.row_values();
    const std::int64_t step = std::max<std::int64_t>(1, chunk_values / width);
    std::vector<std::byte> raw(static_cast<std::size_t>(step * tensor_.row_bytes()));
    std::vector<float> wide(static_cast<std::size_t>(step * width));
    std::vector<std::byte> out(static_cast<std::size_t>(step * width * 4));
    for (std::int64_t row = 0; row < tensor_.rows(); row += step) {
      const std::int64_t n = std::min(step, tensor_.rows() - row);
      fill(row, n, raw.data());
      widen(tensor_.type, raw.data(), n * width, wide.data());
      round_values(kind_, wide.data(), n * width, out.data());
      const auto size =
          static_cast<std::size_t>(n * width / kind_.block_values * kind_.block_bytes);
      if (auto sunk = sink(std::span<const std::byte>(out.data(), size)); !sunk.ok()) return sunk;
    }
    return nothing{};
  }

private:
  void fill(std::int64_t first, std::int64_t n, std::byte* out) const {
    if (head_dim_ == 0) return filler_.fill(first, n, out);
    const std::int64_t half = head_dim_ / 2;
    for (std::int64_t row = first; row < first + n; ++row) {
      const std::int64_t in_head = row % head_dim_;
      const std::int64_t from = row - in_head + in_head % 2 * half + in_head / 2;
      filler_.fill(from, 1, out + (row - first) * tensor_.row_bytes());
    }
  }

  const planned_tensor& tensor_;
  tensor_filler filler_;
  gguf_kind kind_;
  std::int64_t head_dim_ = 0; ///< of Q and K when their rows change places
};

result<nothing> check_blocks(const std::vector<planned_tensor>& tensors, const gguf_kind& kind) {
  for (const planned_tensor& t : tensors)
    if (t.shape.size() > 1 && t.row_values() % kind.block_values != 0)
      return failure{errc::unsupported, t.name + ": rows must be a multiple of " +
                                            std::to_string(kind.block_values) + " for " +
                                            kind.name + ", got " + std::to_string(t.row_values())};
  return nothing{};
}

std::string make_header(const write_job& job, const std::string& architecture,
                        const gguf_kind& kind) {
  const gguf_metadata meta = make_gguf_metadata(job.made, architecture);
  gguf_buffer out;
  out.append("GGUF");
  out.u32(3);
  out.u64(job.tensors.size());
  out.u64(meta.count);
  out.append(meta.pairs.bytes());
  std::int64_t offset = 0;
  for (const planned_tensor& t : job.tensors) {
    const converter c(job.made, t, kind);
    out.text(gguf_name(t.name));
    out.u32(t.shape.size());
    for (auto n = t.shape.rbegin(); n != t.shape.rend(); ++n)
      out.u64(static_cast<std::uint64_t>(*n));
    out.u32(c.kind().id);
    out.u64(static_cast<std::uint64_t>(offset));
    offset = aligned(offset + c.bytes());
  }
  out.pad(alignment);
  return out.bytes();
}

result<nothing> write_tensors(write_job& job, const gguf_kind& kind, output_file& out) {
  constexpr std::byte zeros[alignment] = {};
  for (const planned_tensor& t : job.tensors) {
    const converter c(job.made, t, kind);
    auto done = c.stream([&](std::span<const std::byte> bytes) {
      if (auto written = out.write(bytes); !written.ok()) return written;
      return job.advance(static_cast<std::int64_t>(bytes.size()));
    });
    if (!done.ok()) return done;
    const auto padding = static_cast<std::size_t>(aligned(c.bytes()) - c.bytes());
    if (auto padded = out.write(std::span(zeros, padding)); !padded.ok()) return padded;
  }
  return nothing{};
}

} // namespace

result<std::int64_t> gguf_bytes(const recipe& r, const write_options& options) {
  auto architecture = architecture_of(r);
  if (!architecture.ok()) return architecture.error();
  auto kind = kind_of(r, options);
  if (!kind.ok()) return kind.error();
  const auto tensors = plan_tensors(r);
  if (auto fits = check_blocks(tensors, *kind.value()); !fits.ok()) return fits.error();
  std::int64_t sum = 0;
  for (const planned_tensor& t : tensors)
    sum += converter(r, t, *kind.value()).bytes();
  return sum;
}

result<nothing> write_gguf(write_job& job, const std::string& name) {
  auto architecture = architecture_of(job.made);
  if (!architecture.ok()) return architecture.error();
  auto kind = kind_of(job.made, job.options);
  if (!kind.ok()) return kind.error();
  auto file = job.out.add(name);
  if (!file.ok()) return file.error();
  output_file& out = file.value();
  if (auto done = out.write(make_header(job, architecture.value(), *kind.value())); !done.ok())
    return done;
  if (auto done = write_tensors(job, *kind.value(), out); !done.ok()) return done;
  return out.close();
}

} // namespace twill::models::synth
