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

/// Takes a model's files. The reason why they could not be opened is logged if no request waits
/// that is refused with it, and if the pool is not draining.
void record_opened(std::size_t m, result<opened_model>& opened, pooled_models& models,
                   pool_state& memory, bool draining);
/// Takes a model's engine, which gets `options`, because they may have been reloaded since the
/// daemon began.
void record_loaded(std::size_t m, result<std::unique_ptr<engine>>& started, pooled_models& models,
                   pool_state& memory, const config::options& options);

} // namespace twill::actors
