// make_runners: the runners for the model that the options name: decoder runners, or null runners
// for `dummy:null`.
#pragma once

#include <utility>

#include "actors/executor/decoder_runner.hpp"
#include "actors/executor/null_runner.hpp"

namespace twill::actors {

/// `kept`: see decoder_runner.hpp.
inline runner_factory make_runners(const config::options& options, load_progress progress,
                                   kept_model kept = nullptr) {
  if (computes_nothing(options.model.path)) return make_null_runners(options);
  return make_decoder_runners(options, std::move(progress), {}, std::move(kept));
}

} // namespace twill::actors
