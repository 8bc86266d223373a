#include "tools/twill-bench/versus/plan.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tools/twill-bench/protocols/protocol.hpp"

namespace twill::bench {
namespace {

/// A table whose keys are all asked for by name; the rest are errors.
class reader {
public:
  reader(const toml::table& table, std::string where) : table_(table), where_(std::move(where)) {}

  [[noreturn]] void fail(const std::string& key, const std::string& rule) const {
    const toml::node* node = table_.get(key);
    const auto line = (node != nullptr ? node->source() : table_.source()).begin.line;
    throw std::runtime_error(where_ + ":" + std::to_string(line) + ": " + key + " " + rule);
  }

  template <class Value>
  std::optional<Value> get(const std::string& key) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return std::nullopt;
    if (auto value = node->value<Value>()) return value;
    fail(key, "has the wrong type");
  }

  template <class Value, class Target>
  void read(const std::string& key, Target& into) {
    if (const auto value = get<Value>(key)) into = static_cast<Target>(*value);
  }

  /// A whole number of at least `least`.
  template <class Target>
  void count(const std::string& key, Target& into, std::int64_t least) {
    const auto value = get<std::int64_t>(key);
    if (!value) return;
    if (*value < least)
      fail(key, "must be >= " + std::to_string(least) + ", got " + std::to_string(*value));
    into = static_cast<Target>(*value);
  }

  void seconds(const std::string& key, std::chrono::duration<double>& into) {
    const auto value = get<double>(key);
    if (value && *value <= 0) fail(key, "must be > 0");
    if (value) into = std::chrono::duration<double>(*value);
  }

  std::string required(const std::string& key) {
    auto value = get<std::string>(key);
    if (!value || value->empty()) fail(key, "must be given");
    return *value;
  }

  void pairs(const std::string& key, std::vector<name_value>& into) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return;
    if (!node->is_table()) fail(key, "must be a table of names and texts");
    for (const auto& entry : *node->as_table()) {
      const auto value = entry.second.value<std::string>();
      if (!value) fail(key, "must be a table of names and texts");
      into.emplace_back(std::string(entry.first), *value);
    }
  }

  /// A list of words, or a text for the shell.
  std::vector<std::string> command(const std::string& key) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) fail(key, "must be given");
    if (const auto text = node->value<std::string>()) return {"/bin/sh", "-c", *text};
    std::vector<std::string> out;
    if (const auto* list = node->as_array())
      for (const auto& each : *list)
        if (const auto word = each.value<std::string>()) out.push_back(*word);
    if (out.empty()) fail(key, "must be a list of words or a text for the shell");
    return out;
  }

  std::vector<reader> tables(const std::string& key) {
    known_.insert(key);
    std::vector<reader> out;
    const toml::node* node = table_.get(key);
    if (node == nullptr) return out;
    const auto* list = node->as_array();
    if (list == nullptr) fail(key, "must be written [[" + key + "]]");
    for (const auto& each : *list) {
      if (!each.is_table()) fail(key, "must be written [[" + key + "]]");
      out.emplace_back(*each.as_table(), where_);
    }
    return out;
  }

  void finish() const {
    for (const auto& entry : table_)
      if (known_.count(std::string(entry.first)) == 0)
        fail(std::string(entry.first), "is not a known key");
  }

private:
  const toml::table& table_;
  std::string where_;
  std::set<std::string> known_;
};

versus_server read_server(reader from) {
  versus_server out;
  out.name = from.required("name");
  out.order.command = from.command("command");
  from.pairs("environment", out.order.environment);
  from.read<std::string>("folder", out.order.folder);
  std::chrono::duration<double> grace(10);
  from.seconds("stop_timeout_s", grace);
  out.order.grace = std::chrono::duration_cast<std::chrono::milliseconds>(grace);
  out.target.base_url = from.required("base_url");
  out.ready_url = out.target.base_url + "/health";
  from.read<std::string>("ready_url", out.ready_url);
  from.seconds("ready_timeout_s", out.ready_timeout);
  from.read<std::string>("backend", out.target.backend);
  const auto known = backend_names();
  if (std::find(known.begin(), known.end(), out.target.backend) == known.end())
    from.fail("backend", "is not a known backend, got " + out.target.backend);
  from.read<std::string>("endpoint", out.target.endpoint);
  from.read<std::string>("model", out.target.model);
  from.read<std::string>("extra_body", out.target.extra_body);
  from.pairs("headers", out.target.headers);
  from.count("connections", out.target.connections, 0);
  from.finish();
  return out;
}

versus_load read_load(reader from) {
  versus_load out;
  serve_options& load = out.load;
  load.ignore_eos = true;
  load.n_prompts = 32;
  load.input_tokens = 128;
  load.max_concurrency = 1;
  load.n_warmups = 1;
  out.name = from.required("name");
  from.count("input_tokens", load.input_tokens, 1);
  from.count("output_tokens", load.output_tokens, 1);
  from.count("num_prompts", load.n_prompts, 1);
  from.count("max_concurrency", load.max_concurrency, 0);
  from.count("num_warmups", load.n_warmups, 0);
  from.count("seed", load.seed, 0);
  from.count("busy_processes", out.busy_processes, 0);
  from.read<double>("request_rate", load.request_rate_per_s);
  from.read<double>("burstiness", load.burstiness);
  if (!(load.request_rate_per_s > 0)) from.fail("request_rate", "must be > 0");
  if (!(load.burstiness > 0)) from.fail("burstiness", "must be > 0");
  from.read<double>("range_ratio", load.range_ratio);
  if (!(load.range_ratio >= 0 && load.range_ratio < 1))
    from.fail("range_ratio", "must be in [0, 1)");
  from.read<bool>("ignore_eos", load.ignore_eos);
  if (const auto value = from.get<double>("temperature")) load.temperature = *value;
  from.seconds("request_timeout_s", load.request_timeout);
  from.finish();
  return out;
}

} // namespace

versus_plan read_plan(const std::string& path) {
  toml::table root;
  try {
    root = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    std::ostringstream text;
    text << path << ":" << error.source().begin.line << ": " << error.description();
    throw std::runtime_error(text.str());
  }
  versus_plan out;
  reader from(root, path);
  from.count("rounds", out.rounds, 1);
  from.read<bool>("restart", out.restart);
  for (const reader& each : from.tables("server"))
    out.servers.push_back(read_server(each));
  for (const reader& each : from.tables("load"))
    out.loads.push_back(read_load(each));
  from.finish();
  if (out.servers.size() < 2) from.fail("server", "must be given at least twice");
  if (out.loads.empty()) from.fail("load", "must be given at least once");
  return out;
}

} // namespace twill::bench
