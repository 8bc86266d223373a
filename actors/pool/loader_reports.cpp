#include "actors/pool/loader_reports.hpp"

#include <chrono>
#include <utility>

#include "config/base/log.hpp"

namespace twill::actors {

void record_opened(std::size_t m, result<opened_model>& opened, pooled_models& models,
                   pool_state& state, bool draining) {
  const auto now = std::chrono::steady_clock::now();
  const bool was_fetched = state.now(m) == pool_state::phase::fetching;
  // waiting requests learn of the failure from their refusal
  const bool somebody_waits = state.waiting(m) > 0;
  if (opened.ok()) {
    models.take_files(m, std::move(opened).value());
    state.opened(m, models.files(m)->need_bytes, now);
    if (was_fetched) log::info("the model " + models.id(m) + " is here");
  } else {
    state.open_failed(m, opened.detail(), now);
    if (!somebody_waits && !draining)
      log::error("the model " + models.id(m) + " cannot be served: " + opened.detail());
  }
}

void record_loaded(std::size_t m, result<std::unique_ptr<engine>>& started, pooled_models& models,
                   pool_state& state, const config::options& options) {
  const auto now = std::chrono::steady_clock::now();
  if (started.ok()) {
    started.value()->reload(options);
    models.take_engine(m, std::move(started).value());
    state.loaded(m, now);
  } else {
    log::error("the model " + models.id(m) + " cannot be loaded: " + started.detail());
    state.load_failed(m, started.detail(), now);
  }
}

} // namespace twill::actors
