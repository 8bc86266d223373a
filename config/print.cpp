// The key table written out: as commented TOML (--print-config) and as the reference page.
#include "config/detail/keys.hpp"
#include "config/load.hpp"

namespace twill::config {
namespace {

using namespace detail;

std::string type_words(const key& k) {
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

} // namespace

std::string print_config(const options& effective) {
  const options defaults;
  std::string out = "# Effective configuration of twill " TWILL_VERSION ".\n";
  std::string_view table;
  for (const auto& k : all_keys()) {
    if (table_of(k) != table) {
      table = table_of(k);
      out += "\n[" + std::string(table) + "]\n";
    }
    const auto now = get(k, effective);
    const auto standard = get(k, defaults);
    out += "# " + std::string(k.doc) + "\n";
    out += "#   " + type_words(k) + "; " + k.possible.words + "\n";
    if (k.secret && now != standard) {
      out += "# " + std::string(member_of(k)) + " is set; its value is not shown\n";
      continue;
    }
    out += std::string(member_of(k)) + " = " + print_value(k, now);
    out += now == standard ? " # default\n" : " # default: " + print_value(k, standard) + "\n";
  }
  return out;
}

std::string print_reference() {
  const options defaults;
  std::string out =
      "# Configuration keys\n\n"
      "Written by `twilld --print-reference`; a test compares this page with the code.\n"
      "Set a key in a TOML file, or with `--set table.key=value`.\n";
  std::string_view table;
  for (const auto& k : all_keys()) {
    if (table_of(k) != table) {
      table = table_of(k);
      out += "\n## [" + std::string(table) +
             "]\n| key | type | default | must be | meaning |\n"
             "|---|---|---|---|---|\n";
    }
    out += "| `" + std::string(member_of(k)) + "` | " + type_words(k) + " | `" +
           print_value(k, get(k, defaults)) + "` | " + k.possible.words + " | " +
           std::string(k.doc) + " |\n";
  }
  return out;
}

std::vector<std::string> changed_keys(const options& before, const options& after) {
  std::vector<std::string> names;
  for (const auto& k : all_keys())
    if (get(k, before) != get(k, after)) names.emplace_back(k.name);
  return names;
}

} // namespace twill::config
