// compare: compares one model in several compute and KV types with the same model in f32 with f32
// KV.
//
// Two decoders are loaded at a time, the f32 one and one other. They run the same tokens side by
// side, and their logits are not kept. Call the functions on the device's thread.
#pragma once

#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "models/errc.hpp"
#include "tools/twill-bench/accuracy/candidate.hpp"
#include "tools/twill-bench/accuracy/divergence.hpp"

namespace twill::bench {

/// A compute type and a KV type, spelled as in `model.compute` and `kv.type`.
struct type_pair {
  std::string compute;
  std::string kv;
};

/// Parses a text such as "bf16/f16". An error names the rule that the text breaks.
models::result<type_pair> parse_type_pair(const std::string& text);

/// Returns one tally per pair, in the order of `pairs`. Returns the errors of decoder::load.
models::result<std::vector<tally>> compare_types(gpu::device& dev, const candidate& s,
                                                 const std::vector<type_pair>& pairs);

} // namespace twill::bench
