// null_runner: the step_runner of `dummy:null`, a model that computes nothing. Its tokens are drawn
// from a hash of the request's seed and the position, so that a benchmark measures the cost of
// everything except the model: sockets, sessions, planning, detokenizing.
//
// Masks of allowed tokens and bans of tokens are respected. A sequence ends only at its limit,
// because no drawn token is a control token. All tokens have the same log-probability. For tests,
// `dummy:null?step-us=2000` makes a step take 2000 microseconds, and `dummy:null?fault-every=60`
// makes a step fail every 60 seconds, as a device may.
#pragma once

#include <string_view>

#include "actors/executor/step_runner.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// True for "dummy:null", with or without options behind a question mark.
bool computes_nothing(std::string_view model_path);

runner_factory make_null_runners(const config::options& options);

} // namespace twill::actors
