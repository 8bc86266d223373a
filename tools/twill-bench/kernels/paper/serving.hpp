// serving: what a server of a seed model reaches under load, by the model on paper. Pure functions.
//
// As many requests are always under way, as in the published sweeps. Each step decodes a token of
// every one of them over half of its final context; a request's prompt is computed in steps of its
// own, which all others wait for: twill mixes prompts and decodes in a step, which would save a
// reading of the weights. Nothing else takes time: no host between steps, no client.
#pragma once

#include "tools/twill-bench/kernels/paper/cards.hpp"
#include "tools/twill-bench/kernels/seed_layers.hpp"

namespace twill::bench::paper {

struct request_load {
  double input = 0, output = 0; ///< tokens of a request, at least 1
  double concurrency = 0;       ///< requests under way
};

/// The load of a published cell: its requests under way by Little's law, and the mean output of
/// requests some of which may have ended early.
request_load load_of(double input, double requests_per_s, double tokens_per_s, double ms_per_token);

struct served {
  double prompt_s = 0;     ///< of one request
  double step_s = 0;       ///< of a decode step
  double tokens_per_s = 0; ///< of outputs
};

served serve(const card& on, const seed_layer& seed, const request_load& load);

/// Reading a model's weights once, as every token of a decode step does.
double least_step_s(const card& on, const seed_layer& seed);

} // namespace twill::bench::paper
