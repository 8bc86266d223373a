#include "actors/pool/pool_of_files.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "actors/detail/executor_failure.hpp"
#include "actors/detail/tenant_budgets.hpp"
#include "actors/engine/caf_engine.hpp"
#include "actors/executor/decoder_sizing.hpp"
#include "actors/executor/runners.hpp"
#include "actors/kv/kv_event_log.hpp"
#include "actors/pool/model_pool.hpp"
#include "actors/pool/pool_parts.hpp"
#include "actors/pool/step_turns.hpp"
#include "gpu/machine.hpp"
#include "models/compute.hpp"

namespace twill::actors {

namespace {

/// Data that the functions of a pool share.
struct pooled_files {
  config::options all;
  model_finder finder;
  std::int64_t budget = 0;
  /// Paths of the models that were found; cleared again if a model cannot be opened. No mutex is
  /// needed: at most one job (fetch, open or load) of a model is under way, and only that job uses
  /// the model's path.
  std::vector<std::string> paths;

  void find(std::size_t m, const std::function<void()>& takes_long) {
    const auto& configured = all.models[m].model.path;
    std::error_code error;
    if (!std::filesystem::exists(paths[m], error))
      paths[m] = finder.find ? finder.find(configured, takes_long) : configured;
  }
};

/// The options for the engine of one model.
config::options options_of(const pooled_files& files, std::size_t model) {
  const auto& all = files.all;
  config::options own = all;
  own.model = all.models[model].model;
  own.model.path = files.paths[model];
  own.model.name = all.models[model].id();
  own.kv.events = all.models[model].kv_events;
  own.models.clear();
  // Budgets of host memory and disk apply to all models together: each model gets an equal share.
  const auto n = static_cast<std::int64_t>(all.models.size());
  if (auto& host = own.offload.host_memory_bytes; host > 0)
    host = std::max<std::int64_t>(host / n, 1);
  own.kv.host_memory_bytes /= n;
  own.kv.disk_memory_bytes /= n;
  return own;
}

result<opened_model> open_files(pooled_files& pool, std::size_t index) {
  pool.find(index, nullptr); // finds the path, unless the model was fetched already
  const config::options options = options_of(pool, index);
  const std::int64_t budget = pool.budget;
  pool.paths[index].clear();
  auto files = models::open_model(options.model.path, options.model.chat_template);
  if (!files.ok()) return executor_failure(files.error());
  models::model model = *files.value();
  // The device is opened only to learn what kernels need; nothing is allocated.
  auto device = gpu::device::open({.kind = options.device.kind,
                                   .threads = options.device.threads,
                                   .memory_bytes = budget,
                                   .id = options.device.id});
  if (!device.ok()) return executor_failure(device.error());
  auto choice = models::resolve_compute(options.model.compute, options.kv.type, model.spec,
                                        *model.weights, device.value()->info());
  if (!choice.ok()) return executor_failure(choice.error());
  model.weights = models::weights_for(choice.value().compute, model.spec, model.weights,
                                      device.value()->info());
  const auto need = estimate_need({options, *device.value(), model, choice.value(), budget});
  pool.paths[index] = options.model.path;
  opened_model opened;
  const std::int32_t asked = options.scheduler.max_context_tokens;
  opened.text =
      make_served_text(options.model, files.value(), asked > 0 ? asked : model.spec.context_length);
  opened.need_bytes = need.all();
  opened.kv_bytes = need.kv;
  return opened;
}

} // namespace

std::int64_t pool_budget(std::int64_t configured, const std::function<std::int64_t()>& chip) {
  if (configured > 0) return configured;
  const std::int64_t on_chip = chip();
  return on_chip > 0 ? on_chip : gpu::machine::available_bytes() / 4 * 3;
}

std::unique_ptr<engine> start_models(const config::options& options, load_progress progress,
                                     model_finder finder) {
  const auto& device = options.device;
  const std::int64_t budget = pool_budget(device.memory_bytes, [&] {
    return gpu::device::chip_memory(
        {.kind = device.kind, .threads = device.threads, .id = device.id});
  });
  const auto pool = std::make_shared<pooled_files>(pooled_files{
      options, std::move(finder), budget, std::vector<std::string>(options.models.size())});
  const auto turns = std::make_shared<step_turns>();
  const auto budgets =
      std::make_shared<tenant_budgets>(options.tenants, std::chrono::steady_clock::now());
  pool_parts parts;
  parts.budgets = budgets;
  // A model keeps its log over the engines that it has one after another.
  std::vector<std::shared_ptr<kv_event_log>> logs;
  for (const auto& model : options.models) {
    const bool is_published = !model.kv_events.endpoint.empty();
    logs.push_back(is_published ? std::make_shared<kv_event_log>() : nullptr);
    if (is_published) parts.kv_events.push_back({model.key, logs.back()});
  }
  parts.is_fetched = [pool](std::size_t model) {
    const auto& finder = pool->finder;
    return finder.may_fetch && finder.may_fetch(pool->all.models[model].model.path);
  };
  parts.fetch = [pool](std::size_t model, const std::function<void()>& takes_long) {
    pool->find(model, takes_long);
  };
  parts.device_is_lost = gpu::device::chip_is_lost;
  parts.open = [pool](std::size_t model) { return open_files(*pool, model); };
  parts.start = [pool, turns, budgets, logs, progress = std::move(progress)](
                    std::size_t model, const opened_model& opened, std::int64_t grant) {
    config::options own = options_of(*pool, model);
    own.device.memory_bytes = grant;
    // If not all of the model fits, the executor divides the memory, as for a single model.
    if (grant >= opened.need_bytes) own.kv.memory_bytes = opened.kv_bytes;
    auto kept = std::make_shared<std::shared_ptr<const models::model>>(opened.text->files);
    auto runners = make_runners(own, progress, std::move(kept));
    return start_engine_with(own, take_turns(std::move(runners), turns), budgets, logs[model]);
  };
  return start_pool(options, budget, std::move(parts));
}

} // namespace twill::actors
