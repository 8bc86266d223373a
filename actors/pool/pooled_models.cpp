#include "actors/pool/pooled_models.hpp"

#include <utility>

#include "actors/pool/sum_stats.hpp"
#include "config/sampling.hpp"

namespace twill::actors {

namespace {

model_state state_of(pool_state::phase what) {
  using phase = pool_state::phase;
  switch (what) {
  case phase::closed:
    return model_state::unloaded;
  case phase::asleep:
    return model_state::asleep;
  case phase::opening:
  case phase::fetching:
  case phase::loading:
    return model_state::loading;
  case phase::awake:
    return model_state::ready;
  case phase::draining:
  case phase::leaving:
    return model_state::draining;
  case phase::failed:
    break;
  }
  return model_state::failed;
}

/// Fills in what clients may learn of a model from its files.
void learn(model_info& info, const served_model& text) {
  info.path = text.files->path;
  info.family = text.files->spec.family;
  info.quantization = text.files->quantization;
  info.created_unix_s = text.created_unix_s;
  info.max_model_len = text.max_context_tokens;
  info.vocab_size = text.files->text->vocab_size();
  info.embedding_size = text.files->spec.embedding_size;
  info.has_chat_template = text.files->has_chat();
  info.default_sampling = text.files->default_sampling;
}

} // namespace

pooled_models::pooled_models(const std::vector<config::shared_model_options>& configured)
    : all_(configured.size()) {
  for (std::size_t m = 0; m < all_.size(); ++m) {
    all_[m].table = configured[m].key;
    auto& info = all_[m].info;
    info.id = configured[m].id();
    info.other_names = configured[m].aliases;
    info.path = configured[m].model.path;
    info.pinned = configured[m].pin;
  }
}

std::optional<std::size_t> pooled_models::find(const std::string& name) const {
  if (name.empty()) return 0;
  for (std::size_t m = 0; m < all_.size(); ++m)
    if (all_[m].info.answers_to(name)) return m;
  return std::nullopt;
}

std::optional<std::size_t> pooled_models::find_for_order(const std::string& name) const {
  if (name.empty()) return std::nullopt;
  auto found = find(name);
  for (std::size_t m = 0; m < all_.size() && !found; ++m)
    if (all_[m].table == name) found = m;
  return found;
}

failure<errc> pooled_models::unknown(const std::string& name) const {
  return {errc::unknown_model,
          "`model` must be a served model such as \"" + id(0) + "\", got \"" + name + "\""};
}

void pooled_models::take_files(std::size_t m, opened_model opened) {
  auto info = all_[m].info;
  learn(info, *opened.text);
  all_[m].files = std::make_shared<const opened_model>(std::move(opened));
  all_[m].info = std::move(info);
}

std::shared_ptr<const opened_model> pooled_models::give_up_files(std::size_t m) {
  return std::exchange(all_[m].files, nullptr);
}

void pooled_models::take_engine(std::size_t m, std::unique_ptr<engine> started) {
  all_[m].running = std::move(started);
}

std::unique_ptr<engine> pooled_models::give_up_engine(std::size_t m) {
  auto& model = all_[m];
  auto counted = port(m).stats();
  forget_gauges(counted);
  add_stats(model.past, counted);
  add_tenants(model.past_tenants, port(m).tenants());
  return std::move(model.running);
}

void pooled_models::end_engines() {
  for (auto& model : all_)
    model.running.reset();
}

engine_state pooled_models::state(const pool_state& memory) const {
  if (!memory.begun()) return engine_state::loading;
  std::size_t failed = 0, fetched = 0;
  if (!lost_detail().empty()) return engine_state::lost; // all models are on the one device
  for (std::size_t m = 0; m < all_.size(); ++m) {
    failed += memory.now(m) == pool_state::phase::failed;
    fetched += memory.now(m) == pool_state::phase::fetching;
    if (all_[m].running && port(m).state() == engine_state::stalled) return engine_state::stalled;
  }
  if (failed == all_.size()) return engine_state::failed;
  return failed + fetched == all_.size() ? engine_state::loading : engine_state::ready;
}

std::string pooled_models::state_detail(const pool_state& memory) const {
  if (!memory.begun()) return "the models are being opened";
  std::string detail;
  for (std::size_t m = 0; m < all_.size(); ++m) {
    const std::string why = all_[m].running ? port(m).state_detail() : memory.detail(m);
    if (!why.empty()) detail += (detail.empty() ? "" : "; ") + id(m) + ": " + why;
  }
  return detail;
}

std::string pooled_models::lost_detail() const {
  for (std::size_t m = 0; m < all_.size(); ++m)
    if (all_[m].running && port(m).state() == engine_state::lost)
      return id(m) + ": " + port(m).state_detail();
  return {};
}

model_info pooled_models::describe(std::size_t m, const pool_state& memory,
                                   const config::sampling_options& sampling) const {
  model_info info = all_[m].info;
  config::put_configured(sampling, info.default_sampling);
  info.state = state_of(memory.now(m));
  info.detail = memory.detail(m);
  info.need_bytes = memory.need(m);
  info.granted_bytes = memory.grant(m);
  info.requests_under_way = static_cast<std::int32_t>(memory.under_way(m));
  info.requests_waiting = static_cast<std::int32_t>(memory.waiting(m));
  if (!all_[m].running) return info;
  for (const auto& awake : port(m).models())
    info.max_model_len = awake.max_model_len;
  const auto own = port(m).state();
  if (own == engine_state::failed || own == engine_state::lost) {
    // The model counts as failed until the engine, which tries again by itself, has loaded it.
    info.state = model_state::failed;
    info.detail = port(m).state_detail();
  }
  return info;
}

std::vector<model_stats> pooled_models::stats(const pool_state& memory) const {
  std::vector<model_stats> all;
  for (std::size_t m = 0; m < all_.size(); ++m) {
    all.push_back({id(m), all_[m].past});
    if (all_[m].running) add_stats(all.back().stats, port(m).stats());
    all.back().stats.requests_waiting += static_cast<std::int32_t>(memory.waiting(m));
  }
  return all;
}

std::vector<tenant_stats> pooled_models::tenants() const {
  std::vector<tenant_stats> all;
  for (std::size_t m = 0; m < all_.size(); ++m) {
    add_tenants(all, all_[m].past_tenants);
    if (all_[m].running) add_tenants(all, port(m).tenants());
  }
  return all;
}

result<served_model_ptr> pooled_models::text(const std::string& name,
                                             const pool_state& memory) const {
  const auto found = find(name);
  if (!found) return unknown(name);
  if (const auto& opened = all_[*found].files) return opened->text;
  std::string why = memory.detail(*found);
  if (why.empty()) why = "its files are not open; load it";
  return failure{errc::not_ready, "the model " + id(*found) + " cannot be used: " + why};
}

} // namespace twill::actors
