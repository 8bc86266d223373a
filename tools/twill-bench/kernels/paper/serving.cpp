#include "tools/twill-bench/kernels/paper/serving.hpp"

#include <algorithm>
#include <cmath>

#include "tools/twill-bench/kernels/paper/counts.hpp"
#include "tools/twill-bench/kernels/paper/decode_step.hpp"

namespace twill::bench::paper {

request_load load_of(double input, double requests_per_s, double tokens_per_s,
                     double ms_per_token) {
  return {input, tokens_per_s / requests_per_s, tokens_per_s * ms_per_token / 1e3};
}

served serve(const card& on, const seed_layer& seed, const request_load& load) {
  const auto sequences = std::max(1LL, std::llround(load.concurrency));
  const auto positions = std::llround(load.input + load.output / 2);
  served s;
  s.prompt_s = prompt_step_of(on, seed, std::llround(load.input)).step_s();
  s.step_s = step_of(on, seed, sequences, positions).step_s();
  const double of_request = s.prompt_s + load.output * s.step_s / static_cast<double>(sequences);
  s.tokens_per_s = load.output / of_request;
  return s;
}

double least_step_s(const card& on, const seed_layer& seed) {
  double bytes = gemm_counts(on, 1, seed.hidden, seed.vocabulary, {16, 0}).dram_bytes;
  for (const product_shape& p : seed.products())
    bytes += seed.n_layers * gemm_counts(on, 1, p.cols, p.rows, format_of(seed)).dram_bytes;
  return bytes / on.read_bytes_per_s();
}

} // namespace twill::bench::paper
