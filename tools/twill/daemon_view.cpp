#include "tools/twill/daemon_view.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "config/base/units.hpp"
#include "tools/common/http_client.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/metrics_text.hpp"

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

std::string why_refused(const http_reply& reply) {
  boost::system::error_code bad;
  const auto body = json::parse(reply.body, bad);
  const auto why = bad ? std::string() : text_at(body, "/error/message");
  return why.empty() ? "it answered with status " + std::to_string(reply.status) : why;
}

std::string shown(const char* form, double a, double b = 0) {
  char text[96];
  std::snprintf(text, sizeof text, form, a, b);
  return text;
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

/// How much a counter grew each second between two looks.
class rates {
public:
  rates(const daemon_view& now, const daemon_view& before)
      : before_(before), seconds_(std::chrono::duration<double>(now.at - before.at).count()) {}

  double of(const std::string& id, const model_load& load, double model_load::*counter) const {
    return seconds_ > 0 ? grown(id, load, counter) / seconds_ : 0;
  }
  /// The mean of what was observed between the looks; 0 when nothing was.
  double mean(const std::string& id, const model_load& load, double model_load::*sum,
              double model_load::*count) const {
    const double n = grown(id, load, count);
    return n > 0 ? grown(id, load, sum) / n : 0;
  }

private:
  double grown(const std::string& id, const model_load& load, double model_load::*counter) const {
    const auto old = before_.loads.find(id);
    const double was = old == before_.loads.end() ? load.*counter : old->second.*counter;
    return std::max(load.*counter - was, 0.0); // a daemon that started anew counts from 0
  }

  const daemon_view& before_;
  double seconds_;
};

void line(std::string& out, const char* name, const std::string& value) {
  char text[32];
  std::snprintf(text, sizeof text, "  %-12s ", name);
  out += text + printable(value) + "\n";
}

double share_of(const model_load& load) {
  return load.kv_blocks > 0 ? load.kv_used_blocks / load.kv_blocks : 0;
}

/// At most `columns` characters of UTF-8, so that no line wraps.
std::string cut_to(const std::string& text, std::size_t columns) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (begins && seen++ == columns) return text.substr(0, i);
  }
  return text;
}

/// `text` in exactly `width` columns.
std::string padded(const std::string& text, std::size_t width) {
  auto cell = cut_to(text, width);
  const auto columns = static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
  return cell + std::string(width - std::min(width, columns), ' ');
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
  };
  for (const auto& sample : read_metrics(scrape)) {
    if (sample.name == "device_memory_used_bytes") view.device_bytes = sample.value;
    if (sample.name == "process_resident_memory_bytes") view.resident_bytes = sample.value;
    if (sample.name == "open_sockets") view.open_sockets = sample.value;
    const auto name = sample.labels.find("model_name");
    if (name == sample.labels.end() || name->second.empty()) continue;
    auto& load = view.loads[name->second];
    if (const auto known = of_models.find(sample.name); known != of_models.end())
      load.*known->second += sample.value;
    if (sample.name != "request_success_total") continue;
    const auto reason = sample.labels.find("finished_reason");
    const bool failed = reason != sample.labels.end() && reason->second == "error";
    (failed ? load.failed : load.finished) += sample.value;
  }
}

daemon_view look_at(const endpoint& where) {
  daemon_view view;
  view.url = where.url();
  const auto ready = http_request(where, "/ready", {}, 10s);
  view.ready = ready.status == 200;
  if (!view.ready) view.why_not = why_refused(ready);
  boost::system::error_code bad;
  const auto version = json::parse(http_request(where, "/version", {}, 10s).body, bad);
  if (!bad) view.version = text_at(version, "/version");
  const auto models = http_request(where, "/v1/models", {}, 10s);
  if (models.status != 200)
    view.why_not = "the list of models was refused: " + why_refused(models);
  else if (!take_models(models.body, view))
    throw client_error(view.url + " answers, but not as twilld does; name the daemon with --url");
  if (const auto metrics = http_request(where, "/metrics", {}, 10s); metrics.status == 200)
    take_metrics(metrics.body, view);
  view.at = std::chrono::steady_clock::now();
  return view;
}

std::string status_text(const daemon_view& now, const daemon_view& before, std::int64_t unix_s) {
  std::string out =
      painted(stream::out, now.ready ? ink::green : ink::red, now.ready ? "ready" : "not ready");
  out += " at " + printable(now.url);
  if (!now.version.empty()) out += ", twilld " + printable(now.version);
  out += "\n";
  if (!now.why_not.empty()) line(out, now.ready ? "note" : "why", now.why_not);
  const rates rate(now, before);
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
         shown("%.0f generated, %.0f read", rate.of(id, load, &model_load::generated_tokens),
               rate.of(id, load, &model_load::prompt_tokens)));
  }
  line(out, "memory",
       format_bytes(static_cast<std::int64_t>(now.device_bytes)) + " on the device, " +
           format_bytes(static_cast<std::int64_t>(now.resident_bytes)) + " of the process");
  line(out, "connections", shown("%.0f", now.open_sockets));
  return out;
}

std::string top_text(const daemon_view& now, const daemon_view& before, std::size_t columns) {
  const rates rate(now, before);
  std::vector<std::string> lines;
  lines.push_back("twill top  " + now.url + "  " +
                  (now.ready ? "ready" : "not ready: " + now.why_not));
  lines.push_back("memory: " + format_bytes(static_cast<std::int64_t>(now.device_bytes)) +
                  " on the device, " + format_bytes(static_cast<std::int64_t>(now.resident_bytes)) +
                  " of the process; connections: " + shown("%.0f", now.open_sockets));
  lines.push_back("");
  lines.push_back(padded("MODEL", 28) +
                  "  RUN  WAIT  KV CACHE          OUT/S    IN/S  FIRST ms  NEXT ms"
                  "    ENDED  FAILED");
  for (const auto& [id, load] : now.loads) {
    const auto filled = static_cast<std::size_t>(std::clamp(share_of(load), 0.0, 1.0) * 10 + 0.5);
    char row[160];
    std::snprintf(row, sizeof row,
                  " %4.0f  %4.0f  [%s%s] %3.0f %%  %6.0f  %6.0f  %8.0f  %7.1f  %7.0f  %6.0f",
                  load.running, load.waiting, std::string(filled, '#').c_str(),
                  std::string(10 - filled, '.').c_str(), 100 * share_of(load),
                  rate.of(id, load, &model_load::generated_tokens),
                  rate.of(id, load, &model_load::prompt_tokens),
                  1000 * rate.mean(id, load, &model_load::first_token_s, &model_load::first_tokens),
                  1000 * rate.mean(id, load, &model_load::between_s, &model_load::between),
                  load.finished, load.failed);
    lines.push_back(padded(printable(id), 28) + row);
  }
  std::string out;
  for (const auto& text : lines)
    out += cut_to(printable(text), columns) + "\n";
  return out;
}

} // namespace twill::tools
