// The tables of keys written out: as commented TOML (--print-config) and as the reference page.
#include "config/detail/keys.hpp"
#include "config/detail/model_keys.hpp"
#include "config/detail/rules.hpp"
#include "config/detail/tenant_keys.hpp"
#include "config/load.hpp"
#include "config/reload.hpp"

namespace twill::config {
namespace {

using namespace detail;

template <class Owner>
std::string type_words(const basic_key<Owner>& k) {
  switch (kind_of(k)) {
  case key_kind::text:
    return "string";
  case key_kind::count:
    return "integer" + (k.unit.empty() ? "" : ", " + std::string(k.unit));
  case key_kind::bytes:
    return "bytes (integer or \"512 MiB\")";
  case key_kind::time:
    return "time (\"30s\" or integer milliseconds)";
  case key_kind::flag:
    return "boolean";
  case key_kind::number:
    return "number";
  case key_kind::list:
    break;
  }
  return k.single ? "string or list of strings" : "list of strings";
}

template <class Owner>
std::string about(const basic_key<Owner>& k) {
  return "# " + std::string(k.doc) + "\n#   " + type_words(k) + "; " + k.possible.words + "\n";
}

/// "member = value" with a comment on the default.
template <class Owner>
std::string assignment(const basic_key<Owner>& k, const Owner& now, const Owner& standard) {
  const auto value = get(k, now);
  const auto other = get(k, standard);
  return std::string(member_of(k.name)) + " = " + print_value(k, value) +
         (value == other ? " # default\n" : " # default: " + print_value(k, other) + "\n");
}

/// The first tenant's members stand under their descriptions.
std::string print_tenants(const std::vector<tenant_options>& tenants) {
  const tenant_options standard;
  std::string out;
  for (const auto& tenant : tenants) {
    out += "\n[[tenants]]\n";
    for (const auto& k : tenant_keys())
      out += (&tenant == &tenants.front() ? about(k) : "") + assignment(k, tenant, standard);
  }
  return out;
}

/// The first model's members stand under their descriptions.
std::string print_models(const std::vector<shared_model_options>& models) {
  const shared_model_options standard;
  std::string out;
  for (const auto& model : models) {
    out += "\n[models." + quote(model.key) + "]\n";
    for (const auto& k : model_keys())
      out += (&model == &models.front() ? about(k) : "") + assignment(k, model, standard);
  }
  return out;
}

template <class Owner>
std::string reference_row(const basic_key<Owner>& k, const Owner& defaults) {
  return "| `" + std::string(member_of(k.name)) + "` | " + type_words(k) + " | `" +
         print_value(k, get(k, defaults)) + "` | " + k.possible.words + " | " + std::string(k.doc) +
         (reloads(k.name) ? " *Reloads.* |\n" : " |\n");
}

constexpr const char* reference_head = "| key | type | default | must be | meaning |\n"
                                       "|---|---|---|---|---|\n";

} // namespace

std::string print_config(const options& effective) {
  const options defaults;
  std::string out = "# Effective configuration of twill " TWILL_VERSION ".\n";
  std::string_view table;
  for (const auto& k : all_keys()) {
    if (table_of(k.name) != table) {
      table = table_of(k.name);
      out += "\n[" + std::string(table) + "]\n";
    }
    out += about(k);
    if (k.secret && get(k, effective) != get(k, defaults))
      out += "# " + std::string(member_of(k.name)) + " is set; its value is not shown\n";
    else
      out += assignment(k, effective, defaults);
  }
  return out + print_models(effective.models) + print_tenants(effective.tenants);
}

std::string print_reference() {
  const options defaults;
  std::string out =
      "# Configuration keys\n\n"
      "Written by `twilld --print-reference`; a test compares this page with the code.\n"
      "Set a key in a TOML file, or with `--set table.key=value`. A running daemon that is told to "
      "reload takes over\nnew values of keys marked *Reloads*; others need a restart.\n";
  std::string_view table;
  for (const auto& k : all_keys()) {
    if (table_of(k.name) != table) {
      table = table_of(k.name);
      out += "\n## [" + std::string(table) + "]\n" + reference_head;
    }
    out += reference_row(k, defaults);
  }
  out += std::string("\n## [models.NAME]\n") + reference_head;
  for (const auto& k : model_keys())
    out += reference_row(k, shared_model_options{});
  out +=
      "\nEach `[models.NAME]` is one of several models that share `device.memory`, and takes the "
      "place of `[model]`. The first in the file serves requests that name no model.\n";
  out += std::string("\n## [[tenants]]\n") + reference_head;
  for (const auto& k : tenant_keys())
    out += reference_row(k, tenant_options{});
  return out +
         "\nEach `[[tenants]]` is one tenant, who is known by its keys. `--set tenants=[...]` "
         "replaces the whole list.\n";
}

std::vector<std::string> changed_keys(const options& before, const options& after) {
  std::vector<std::string> names;
  for (const auto& k : all_keys())
    if (get(k, before) != get(k, after)) names.emplace_back(k.name);
  if (before.models != after.models) names.emplace_back("models");
  if (before.tenants != after.tenants) names.emplace_back("tenants");
  return names;
}

} // namespace twill::config
