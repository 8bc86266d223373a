// loader_reports: what a pool records when its loader reports that it opened a model's files or
// started a model's engine, or why it could not.
//
// Threads: the loader's threads call these functions and hold the pool's mutex. A function that
// throws std::bad_alloc has changed nothing, and is called again.
#pragma once

#include <cstddef>
#include <memory>

#include "actors/engine.hpp"
#include "actors/pool/pool_parts.hpp"
#include "actors/pool/pool_state.hpp"
#include "actors/pool/pooled_models.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// Adds a model's open files to `models`, or records why they could not be opened. This reason is
/// logged unless a request waits for the model, since its client then gets the reason, or unless
/// the pool is draining.
void record_opened(std::size_t m, result<opened_model>& opened, pooled_models& models,
                   pool_state& state, bool draining);
/// Adds a model's engine to `models`. The engine was started with the options of the daemon's
/// start; it now gets `options`, which may have been reloaded since then.
void record_loaded(std::size_t m, result<std::unique_ptr<engine>>& started, pooled_models& models,
                   pool_state& state, const config::options& options);

} // namespace twill::actors
