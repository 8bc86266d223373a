// serving: predicts the throughput of a server under load with the model on paper (model.hpp), for
// a seed model (seed_layers.hpp). The functions are pure.
//
// As in the published sweeps (tools/twill-bench/runs/published_sweeps.hpp), the number of requests
// under way is constant. Each decode step computes one token for every request, over the prompt and
// half of the output as context. The prompt of a request is computed in a step of its own, for
// which all other requests wait. (twill mixes prompts and decodes in one step, which would save one
// reading of the weights.) The time of a step includes the host's launches (decode_step::step_s());
// otherwise the host and the client take no time.
#pragma once

#include "tools/twill-bench/kernels/paper/cards.hpp"
#include "tools/twill-bench/kernels/seed_layers.hpp"

namespace twill::bench::paper {

struct request_load {
  double input = 0, output = 0; ///< tokens of a request, at least 1
  double concurrency = 0;       ///< requests under way
};

/// The load at which one pair of input and output length of a published sweep was measured. The
/// number of requests under way follows from Little's law. The output length is the mean, since
/// some requests may have ended early.
request_load load_of(double input, double requests_per_s, double tokens_per_s, double ms_per_token);

struct served {
  double prompt_s = 0;     ///< time of the prompt step of one request
  double step_s = 0;       ///< time of a decode step
  double tokens_per_s = 0; ///< output tokens
};

served serve(const card& on, const seed_layer& seed, const request_load& load);

/// The time to read the model's weights once, which every decode step has to do.
double least_step_s(const card& on, const seed_layer& seed);

} // namespace twill::bench::paper
