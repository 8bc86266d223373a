// compare: one model in several compute and KV types, each against f32 with f32 KV.
//
// The f32 decoder and one other are loaded at a time and run in step; no logits are kept. Call on
// the device's thread.
#pragma once

#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "models/errc.hpp"
#include "tools/twill-bench/accuracy/candidate.hpp"
#include "tools/twill-bench/accuracy/divergence.hpp"

namespace twill::bench {

/// In the words of `model.compute` and `kv.type`.
struct type_pair {
  std::string compute;
  std::string kv;
};

/// "bf16/f16", or a failure that names the rule.
models::result<type_pair> parse_type_pair(const std::string& text);

/// One tally per pair, in their order. Fails as decoder::load does.
models::result<std::vector<tally>> compare_types(gpu::device& dev, const candidate& s,
                                                 const std::vector<type_pair>& pairs);

} // namespace twill::bench
