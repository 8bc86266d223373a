// baichuan: Baichuan 1 and 2 (arXiv:2309.10305): fused W_pack; rotary positions in the 7B models,
// ALiBi in the 13B ones; Baichuan 2 normalises each row of its head.
//
// The config does not say which of these a file is: the authors' code for each size does. Positions
// are rotary for a hidden size of 4096, or for any unpublished size with
// `max_position_embeddings`; the head is normalised unless the vocabulary is Baichuan 1's 64000.
#pragma once

#include <cstdint>
#include <vector>

#include "config/base/value.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

result<model_spec> baichuan_spec(const value& config, const checkpoint& weights);

/// One slope per head (arXiv:2108.12409): powers of 2^(-8 / n) for n heads; for n no power of two,
/// those of the next smaller one, then every other one of the next larger. // (n_heads)
std::vector<float> alibi_slopes(std::int32_t n_heads);

} // namespace twill::models::families
