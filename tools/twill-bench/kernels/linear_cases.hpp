// linear_cases: products of activations and weights.
#pragma once

#include "tools/twill-bench/kernels/cases.hpp"

namespace twill::bench {

/// linear() at shapes of 7B and 13B models and of the default model, with every kind of weights.
void for_each_linear_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(const kernel_case&)>& measure);

/// The matrix products of one layer of each seed model (seed_layers.hpp): first each product alone,
/// then all of them in sequence as one case, whose bytes and operations are the sums over the
/// products.
void for_each_layer_case(gpu::device& dev, const kernel_selection& selection,
                         const std::function<void(const kernel_case&)>& measure);

} // namespace twill::bench
