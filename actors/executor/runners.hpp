// make_runners: what runs the steps of the model that options name: a decoder, or for `dummy:null`
// nothing at all.
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
