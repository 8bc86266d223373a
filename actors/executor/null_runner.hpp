// null_runner: the step_runner of `dummy:null`, a model that computes nothing. Its tokens are drawn
// from a hash of the request's seed and the position, so that what a measurement sees is the cost
// of everything around the model: sockets, sessions, planning, detokenizing.
//
// Masks and bans hold; a sequence ends at its limit, as no drawn token is a control token. Each
// token has the same log-probability. For tests of what surrounds it, `dummy:null?step-us=2000`
// takes that long for a step, and `dummy:null?fault-every=60` fails a step each minute, as a device
// may.
#pragma once

#include <string_view>

#include "actors/executor/step_runner.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// True for "dummy:null", with or without options behind a question mark.
bool computes_nothing(std::string_view model_path);

runner_factory make_null_runners(const config::options& options);

} // namespace twill::actors
