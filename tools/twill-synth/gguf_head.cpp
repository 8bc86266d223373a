#include "tools/twill-synth/gguf_head.hpp"

namespace twill::synth {

std::string make_gguf_head(const gguf_pairs& pairs, const std::vector<gguf_tensor_entry>& tensors) {
  gguf_buffer out;
  out.append("GGUF");
  out.u32(3);
  out.u64(tensors.size());
  out.u64(pairs.count());
  out.append(pairs.bytes());
  std::int64_t offset = 0;
  for (const gguf_tensor_entry& t : tensors) {
    out.text(t.name);
    out.u32(t.shape.size());
    for (const std::int64_t n : t.shape)
      out.u64(static_cast<std::uint64_t>(n));
    out.u32(t.kind);
    out.u64(static_cast<std::uint64_t>(offset));
    offset = gguf_aligned(offset + t.bytes);
  }
  std::string head = out.bytes();
  head.resize(static_cast<std::size_t>(gguf_aligned(static_cast<std::int64_t>(head.size()))), '\0');
  return head;
}

} // namespace twill::synth
