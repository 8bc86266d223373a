#include "config/reload.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "config/detail/keys.hpp"
#include "config/detail/tenant_keys.hpp"

namespace twill::config {
namespace {

using namespace detail;

/// Tables all of whose keys are read anew by each request.
constexpr std::array<std::string_view, 4> tables{"limits", "metrics", "sampling", "tenants"};
/// Single keys of other tables.
constexpr std::array<std::string_view, 7> keys{
    "log.level",           "scheduler.queue_timeout", "server.api_keys",
    "server.cors_origins", "server.drain_timeout",    "server.hosts",
    "server.keys_file"};

/// The printable form of a value; of a secret list, only its length is shown.
template <class Owner>
std::string shown(const basic_key<Owner>& k, const Owner& from) {
  const auto value = get(k, from);
  if (!k.secret) return print_value(k, value);
  const auto* list = std::get_if<std::vector<std::string>>(&value);
  if (list == nullptr) return "a secret";
  return std::to_string(list->size()) + (list->size() == 1 ? " secret" : " secrets");
}

template <class Owner>
void compare(const basic_key<Owner>& k, const std::string& name, const Owner& before,
             const Owner& after, std::vector<key_change>& to) {
  if (get(k, before) != get(k, after)) to.push_back({name, shown(k, before), shown(k, after)});
}

std::map<std::string_view, const tenant_options*>
by_name(const std::vector<tenant_options>& tenants) {
  std::map<std::string_view, const tenant_options*> named;
  for (const auto& one : tenants)
    named.emplace(one.name, &one);
  return named;
}

void compare_tenants(const std::vector<tenant_options>& before,
                     const std::vector<tenant_options>& after, std::vector<key_change>& to) {
  const auto old = by_name(before);
  const auto now = by_name(after);
  auto all = old;
  all.insert(now.begin(), now.end());
  for (const auto& [name, any] : all) {
    const std::string key = "tenants." + std::string(name);
    const auto was = old.find(name);
    const auto is = now.find(name);
    if (was == old.end() || is == now.end()) {
      to.push_back(
          {key, was == old.end() ? "absent" : "present", is == now.end() ? "absent" : "present"});
      continue;
    }
    for (const auto& k : tenant_keys())
      compare(k, key + "." + std::string(member_of(k.name)), *was->second, *is->second, to);
  }
}

/// Adds changed models. A reload does not apply them, but reports them.
void compare_models(const options& before, const options& after, std::vector<key_change>& to) {
  const auto keys_of = [](const options& of) {
    std::string keys;
    for (const auto& model : of.models)
      keys += (keys.empty() ? "" : ", ") + model.key;
    return keys.empty() ? std::string("none") : keys;
  };
  if (!(before.models == after.models)) to.push_back({"models", keys_of(before), keys_of(after)});
}

} // namespace

bool reloads(std::string_view key) {
  return std::find(tables.begin(), tables.end(), table_of(key)) != tables.end() ||
         std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::vector<key_change> changes_between(const options& before, const options& after) {
  std::vector<key_change> all;
  for (const auto& k : all_keys())
    compare(k, std::string(k.name), before, after, all);
  compare_models(before, after, all);
  compare_tenants(before.tenants, after.tenants, all);
  return all;
}

options take_reloads(const options& in_force, const options& loaded) {
  options taken = in_force;
  for (const auto& k : all_keys())
    if (reloads(k.name)) set(k, taken, get(k, loaded));
  taken.tenants = loaded.tenants;
  return taken;
}

} // namespace twill::config
