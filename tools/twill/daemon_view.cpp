#include "tools/twill/daemon_view.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tools/common/http_client.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/metrics_text.hpp"
#include "tools/twill/number_text.hpp"
#include "tools/twill/refusal.hpp"
#include "tools/twill/text_table.hpp"

namespace twill::tools {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

std::string text_at(const json::value& from, const char* pointer) {
  boost::system::error_code bad;
  const auto* found = from.find_pointer(pointer, bad);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

std::int64_t number_at(const json::value& from, const char* pointer) {
  boost::system::error_code bad;
  const auto* found = from.find_pointer(pointer, bad);
  const auto number = found == nullptr ? 0 : found->to_number<std::int64_t>(bad);
  return bad ? 0 : number;
}

std::string time_since(std::int64_t seconds) {
  seconds = std::max<std::int64_t>(seconds, 0);
  const auto days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;
  const auto part = [](std::int64_t n, const char* unit) { return std::to_string(n) + " " + unit; };
  if (days > 0) return part(days, "d ") + part(hours, "h");
  if (hours > 0) return part(hours, "h ") + part(minutes, "min");
  if (minutes > 0) return part(minutes, "min ") + part(seconds % 60, "s");
  return part(seconds, "s");
}

std::string described(const model_view& model) {
  return model.id + " (" + model.family + ", " + model.quantization + ", context " +
         std::to_string(model.context_tokens) + ")";
}

/// Computes how much counters grew between two views of a daemon. `Loads` is a map whose values,
/// model_load or tenant_load, contain the counters.
template <class Loads>
class growth {
public:
  using name = typename Loads::key_type;
  using load = typename Loads::mapped_type;

  growth(const daemon_view& now, const daemon_view& before, Loads daemon_view::*loads)
      : before_(before.*loads),
        seconds_(std::chrono::duration<double>(now.at - before.at).count()) {}

  double per_second(const name& of, const load& now, double load::*counter) const {
    return seconds_ > 0 ? grown(of, now, counter) / seconds_ : 0;
  }
  /// The mean of the observations made between the two views; 0 when there were none.
  double mean(const name& of, const load& now, double load::*sum, double load::*count) const {
    const double n = grown(of, now, count);
    return n > 0 ? grown(of, now, sum) / n : 0;
  }

private:
  double grown(const name& of, const load& now, double load::*counter) const {
    const auto old = before_.find(of);
    const double was = old == before_.end() ? now.*counter : old->second.*counter;
    return std::max(now.*counter - was, 0.0); // counters start at 0 when a daemon restarts
  }

  const Loads& before_;
  double seconds_;
};

void line(std::string& out, const char* name, const std::string& value) {
  char text[32];
  std::snprintf(text, sizeof text, "  %-12s ", name);
  out += text + printable(value) + "\n";
}

double share_of(const model_load& load) {
  return share(load.kv_used_blocks, load.kv_blocks);
}

} // namespace

bool take_models(std::string_view body, daemon_view& view) {
  boost::system::error_code bad;
  const auto parsed = json::parse(body, bad);
  const auto* list = bad ? nullptr : parsed.find_pointer("/data", bad);
  if (list == nullptr || !list->is_array()) return false;
  for (const auto& entry : list->get_array()) {
    model_view model;
    model.id = text_at(entry, "/id");
    model.family = text_at(entry, "/family");
    model.quantization = text_at(entry, "/quantization");
    model.context_tokens = number_at(entry, "/max_model_len");
    model.created_unix_s = number_at(entry, "/created");
    model.state = text_at(entry, "/state");
    view.models.push_back(std::move(model));
  }
  return true;
}

void take_metrics(std::string_view scrape, daemon_view& view) {
  const std::map<std::string_view, double model_load::*> of_models{
      {"num_requests_running", &model_load::running},
      {"num_requests_waiting", &model_load::waiting},
      {"kv_blocks_used", &model_load::kv_used_blocks},
      {"kv_blocks", &model_load::kv_blocks},
      {"prompt_tokens_total", &model_load::prompt_tokens},
      {"generation_tokens_total", &model_load::generated_tokens},
      {"time_to_first_token_seconds_sum", &model_load::first_token_s},
      {"time_to_first_token_seconds_count", &model_load::first_tokens},
      {"inter_token_latency_seconds_sum", &model_load::between_s},
      {"inter_token_latency_seconds_count", &model_load::between},
      {"prefix_cache_queries_total", &model_load::looked_up_tokens},
      {"prefix_cache_hits_total", &model_load::cached_tokens},
  };
  const std::map<std::string_view, double device_memory::*> of_memory{
      {"device_memory_reserved_bytes", &device_memory::reserved},
      {"device_memory_touched_bytes", &device_memory::touched},
      {"device_weights_bytes", &device_memory::weights},
      {"device_kv_bytes", &device_memory::kv},
  };
  const std::map<std::string_view, double process_memory::*> of_process{
      {"process_resident_memory_bytes", &process_memory::resident},
      {"process_device_memory_bytes", &process_memory::device},
      {"process_mapped_file_bytes", &process_memory::mapped_files},
  };
  const std::map<std::string_view, double tenant_load::*> of_tenants{
      {"tenant_requests_running", &tenant_load::running},
      {"tenant_requests_waiting", &tenant_load::waiting},
      {"tenant_prompt_tokens_total", &tenant_load::prompt_tokens},
      {"tenant_cached_prompt_tokens_total", &tenant_load::cached_tokens},
      {"tenant_generation_tokens_total", &tenant_load::generated_tokens},
      {"tenant_time_to_first_token_seconds_sum", &tenant_load::first_token_s},
      {"tenant_time_to_first_token_seconds_count", &tenant_load::first_tokens},
  };
  for (const auto& sample : read_metrics(scrape)) {
    if (const auto known = of_process.find(sample.name); known != of_process.end())
      view.process.*known->second = sample.value;
    if (sample.name == "open_sockets") view.open_sockets = sample.value;
    const auto label = [&sample](const char* name) {
      const auto found = sample.labels.find(name);
      return found == sample.labels.end() ? std::string() : found->second;
    };
    const auto model = label("model_name");
    const auto reason = label("finished_reason");
    if (const auto tenant = sample.labels.find("tenant"); tenant != sample.labels.end()) {
      auto& load = view.tenants[{tenant->second, model}];
      if (const auto known = of_tenants.find(sample.name); known != of_tenants.end())
        load.*known->second += sample.value;
      if (sample.name != "tenant_requests_total") continue;
      const bool ended = reason == "stop" || reason == "length" || reason == "cancelled";
      (ended ? load.finished : load.failed) += sample.value;
      continue;
    }
    if (model.empty()) continue;
    auto& load = view.loads[model];
    if (const auto known = of_models.find(sample.name); known != of_models.end())
      load.*known->second += sample.value;
    if (const auto known = of_memory.find(sample.name); known != of_memory.end())
      load.memory.*known->second += sample.value;
    if (sample.name != "request_success_total") continue;
    (reason == "error" ? load.failed : load.finished) += sample.value;
  }
}

namespace {

/// The state in one or two words, for a table column.
const char* state_of(const http_reply& ready, std::string_view why_not) {
  if (ready.status == 200) return "ready";
  boost::system::error_code bad;
  const auto body = json::parse(ready.body, bad);
  if (!bad && text_at(body, "/error/code") == "shutting_down") return "draining";
  return why_not.starts_with("the model is loading") ? "loading" : "not ready";
}

/// Queries a daemon. `models` is the route that lists the models, which differs for administrators.
daemon_view look_by(const endpoint& where, const char* models, const look_limits& limits) {
  const auto end = std::chrono::steady_clock::now() + limits.whole;
  const auto get = [&](const char* path) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    return http_request(where, path, {}, std::clamp<std::chrono::milliseconds>(left, 0s, 10s),
                        limits.stop);
  };
  daemon_view view;
  view.url = where.url();
  const auto ready = get("/ready");
  view.ready = ready.status == 200;
  if (!view.ready) view.why_not = why_refused(where, ready.status, ready.body);
  view.state = state_of(ready, view.why_not);
  boost::system::error_code bad;
  const auto version = json::parse(get("/version").body, bad);
  if (!bad) {
    view.version = text_at(version, "/version");
    view.name = text_at(version, "/name");
  }
  const auto list = get(models);
  if (list.status != 200)
    view.why_not = "the list of models was refused: " + why_refused(where, list.status, list.body);
  else if (!take_models(list.body, view))
    throw not_twilld(view.url + " answers, but not as twilld does; name the daemon with --url");
  if (const auto metrics = get("/metrics"); metrics.status == 200) take_metrics(metrics.body, view);
  view.at = std::chrono::steady_clock::now();
  return view;
}

} // namespace

daemon_view look_at(const endpoint& where, const look_limits& limits) {
  return look_by(where, "/v1/models", limits);
}

daemon_view look_as_administrator(const endpoint& administrator) {
  return look_by(administrator, "/admin/models", {});
}

device_memory memory_of_models(const daemon_view& view) {
  device_memory all;
  for (const auto& [id, load] : view.loads)
    all.add(load.memory);
  return all;
}

std::string status_text(const daemon_view& now, const daemon_view& before, std::int64_t unix_s) {
  std::string out =
      painted(stream::out, now.ready ? ink::green : ink::red, now.ready ? "ready" : "not ready");
  out += " at " + printable(now.url);
  if (!now.version.empty()) out += ", twilld " + printable(now.version);
  out += "\n";
  if (!now.why_not.empty()) line(out, now.ready ? "note" : "why", now.why_not);
  const growth rate(now, before, &daemon_view::loads);
  for (const auto& model : now.models) {
    line(out, "model", described(model));
    line(out, "up for", time_since(unix_s - model.created_unix_s));
  }
  for (const auto& [id, load] : now.loads) {
    if (now.loads.size() > 1) line(out, "model", id);
    line(out, "requests",
         shown("%.0f running, %.0f waiting", load.running, load.waiting) + "; " +
             shown("%.0f ended, %.0f failed", load.finished, load.failed));
    line(out, "KV cache",
         shown("%.0f %% in use", 100 * share_of(load)) +
             shown(" (%.0f of %.0f blocks)", load.kv_used_blocks, load.kv_blocks));
    line(out, "tokens/s",
         shown("%.0f generated, %.0f read",
               rate.per_second(id, load, &model_load::generated_tokens),
               rate.per_second(id, load, &model_load::prompt_tokens)));
  }
  line(out, "memory", memory_text(memory_of_models(now)));
  line(out, "process", memory_text(now.process));
  line(out, "connections", shown("%.0f", now.open_sockets));
  return out;
}

namespace {

/// A table with one row per model.
std::vector<table_column> model_table(const daemon_view& now, const daemon_view& before) {
  const growth rate(now, before, &daemon_view::loads);
  table_column model{"MODEL", "", {}, {}, true}, running{"RUN"}, waiting{"WAIT"},
      cache{"KV CACHE", "KV"}, out{"OUT/S"}, in{"IN/S"}, first{"FIRST ms"}, next{"NEXT ms"},
      ended{"ENDED"}, failed{"FAILED"};
  for (const auto& [id, load] : now.loads) {
    model.cells.push_back(printable(id));
    running.cells.push_back(whole(load.running));
    waiting.cells.push_back(whole(load.waiting));
    cache.cells.push_back(bar_of(share_of(load)));
    cache.short_cells.push_back(shown("%.0f %%", 100 * share_of(load)));
    out.cells.push_back(whole(rate.per_second(id, load, &model_load::generated_tokens)));
    in.cells.push_back(whole(rate.per_second(id, load, &model_load::prompt_tokens)));
    first.cells.push_back(
        whole(1000 * rate.mean(id, load, &model_load::first_token_s, &model_load::first_tokens)));
    next.cells.push_back(
        shown("%.1f", 1000 * rate.mean(id, load, &model_load::between_s, &model_load::between)));
    ended.cells.push_back(whole(load.finished));
    failed.cells.push_back(whole(load.failed));
  }
  return {model, running, waiting, cache, out, in, first, next, failed, ended};
}

/// A table with one row per tenant and model, the busiest first.
std::vector<table_column> tenant_table(const daemon_view& now, const daemon_view& before) {
  const growth rate(now, before, &daemon_view::tenants);
  using entry = std::pair<const std::pair<std::string, std::string>, tenant_load>;
  std::vector<const entry*> all;
  for (const auto& one : now.tenants)
    all.push_back(&one);
  std::stable_sort(all.begin(), all.end(), [](const entry* a, const entry* b) {
    return a->second.running + a->second.waiting > b->second.running + b->second.waiting;
  });
  table_column tenant{"TENANT", "", {}, {}, true}, model{"MODEL", "", {}, {}, true}, running{"RUN"},
      waiting{"WAIT"}, in{"IN/S"}, cached{"CACHED %"}, first{"FIRST ms"}, ended{"ENDED"},
      failed{"FAILED"};
  for (const auto* one : all) {
    const auto& [name, load] = *one;
    const double read = load.prompt_tokens;
    tenant.cells.push_back(name.first.empty() ? "(all)" : printable(name.first));
    model.cells.push_back(printable(name.second));
    running.cells.push_back(whole(load.running));
    waiting.cells.push_back(whole(load.waiting));
    in.cells.push_back(whole(rate.per_second(name, load, &tenant_load::prompt_tokens)));
    cached.cells.push_back(whole(read > 0 ? 100 * load.cached_tokens / read : 0));
    first.cells.push_back(whole(
        1000 * rate.mean(name, load, &tenant_load::first_token_s, &tenant_load::first_tokens)));
    ended.cells.push_back(whole(load.finished));
    failed.cells.push_back(whole(load.failed));
  }
  return {tenant, model, running, waiting, in, cached, first, failed, ended};
}

/// A text with the states of the models that are not ready or have no row of numbers.
std::string states_of(const daemon_view& now) {
  std::string all;
  for (const auto& model : now.models)
    if (!model.state.empty() && model.state != "ready")
      all += (all.empty() ? "" : ", ") + model.id + " is " + model.state;
  return all;
}

} // namespace

std::string top_text(const daemon_view& now, const daemon_view& before, std::size_t columns) {
  std::vector<std::string> lines;
  lines.push_back("twill top  " + now.url + "  " +
                  (now.ready ? "ready" : "not ready: " + now.why_not));
  lines.push_back("memory: " + short_memory_text(memory_of_models(now)) +
                  "; connections: " + shown("%.0f", now.open_sockets));
  lines.push_back("process: " + memory_text(now.process));
  lines.push_back("");
  std::string out;
  const auto write = [&out](const std::vector<std::string>& texts) {
    for (const auto& text : texts)
      out += printable(text) + "\n";
  };
  for (const auto& text : lines)
    write(wrap_line(printable(text), columns));
  write(fit_table(model_table(now, before), columns));
  if (const auto states = states_of(now); !states.empty())
    write(wrap_line(printable(states), columns));
  if (now.tenants.empty()) return out;
  out += "\n";
  write(fit_table(tenant_table(now, before), columns));
  return out;
}

} // namespace twill::tools
