#include "models/families/gguf_baichuan.hpp"

#include <string>
#include <utility>

#include "models/families/baichuan.hpp"
#include "models/families/gguf_common.hpp"

namespace twill::models::families {
namespace {

constexpr std::int32_t layers_of_7b = 32;
constexpr std::int32_t layers_of_13b = 40;
constexpr std::int32_t most_heads = 1 << 12; // as validate() has it

void read_positions(gguf_reader& file, const checkpoint& weights, model_spec& spec) {
  if (spec.n_layers == layers_of_7b) {
    // Converters make rotary pairs neighbours, as they do for Llama.
    read_gguf_rotary(file, weights, gpu::rope_kind::interleaved, spec);
  } else if (spec.n_layers == layers_of_13b) {
    spec.rope = {};
    if (spec.n_heads <= most_heads) spec.alibi_slopes = alibi_slopes(spec.n_heads);
  } else {
    file.fail(errc::unsupported,
              file.quoted("block_count") +
                  " must be 32 (7B, rotary) or 40 (13B, ALiBi): no other key tells Baichuan's "
                  "positions, got " +
                  std::to_string(spec.n_layers));
  }
}

} // namespace

result<model_spec> gguf_baichuan_spec(const gguf::metadata& meta, const checkpoint& weights) {
  model_spec spec;
  spec.family = "baichuan";
  spec.names = gguf_names(weights);
  gguf_reader file(meta, spec.family);
  read_gguf_sizes(file, spec);
  read_gguf_vocabulary(file, weights, false, spec);
  read_positions(file, weights, spec);
  return finished(file, std::move(spec));
}

} // namespace twill::models::families
