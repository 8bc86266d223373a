#include "config/load.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>

#include "config/base/log.hpp"
#include "config/base/nearest.hpp"
#include "config/base/units.hpp"
#include "config/detail/keys.hpp"
#include "config/detail/load_words.hpp"
#include "config/detail/model_tables.hpp"
#include "config/detail/rules.hpp"
#include "config/detail/tenant_keys.hpp"
#include "config/detail/toml_value.hpp"
#include "config/parse_toml.hpp"

namespace twill::config {
namespace {

using namespace detail;

constexpr std::int64_t largest_file = 4 * mib;
constexpr std::size_t most_files = 200;
constexpr std::string_view tenants_table = "tenants";

/// `[name]` or `[[name]]`.
std::string bracketed(std::string_view name, bool twice) {
  const std::string inner = "[" + std::string(name) + "]";
  return ticked(twice ? "[" + inner + "]" : inner);
}

std::vector<std::string_view> table_names() {
  std::vector<std::string_view> names;
  for (const auto& k : all_keys())
    if (names.empty() || names.back() != table_of(k.name)) names.push_back(table_of(k.name));
  names.push_back(tenants_table);
  names.push_back(models_table);
  return names;
}

std::string unknown_key(std::string_view name) {
  std::vector<std::string_view> known;
  for (const auto& k : all_keys())
    known.push_back(k.name);
  auto meant = nearest(name, known);
  if (meant.empty()) {
    // The member may be right and its table wrong or missing.
    const auto member = name.substr(name.find('.') == name.npos ? 0 : name.find('.') + 1);
    for (const auto& k : all_keys())
      if (member_of(k.name) == member && meant.empty()) meant = k.name;
  }
  return "unknown key " + ticked(name) +
         (meant.empty() ? "; `twilld --print-reference` lists all keys"
                        : "; did you mean " + ticked(meant) + "?");
}

/// Collects values and errors from every source, then checks the rules that involve several keys.
class loader {
public:
  void add_table(const toml::table& root, const std::string& file) {
    for (const auto& [name, node] : root)
      add_section(name, node, file);
  }

  void add_setting(const setting& given) {
    if (given.key == tenants_table) {
      const auto parsed = parse_as_v(given.value);
      const auto given_text = toml::table{{"v", given.value}};
      return add_tenants(*(parsed ? *parsed : given_text).get("v"),
                         [&](const toml::source_region&) { return given.origin; });
    }
    if (given.key.starts_with("models.")) return models_.add_setting(given);
    const auto* k = key_named(given.key, given.origin);
    if (k == nullptr) return;
    const auto parsed = given.literal ? toml::table{{"v", given.value}} : parse(*k, given.value);
    store(*k, *parsed.get("v"), given.origin);
  }

  result<options, load_errc> finish() {
    check_memory();
    check_tiers();
    check_kv_events();
    check_tls();
    check_tenants();
    check_administrators();
    check_models();
    loaded_.models = models_.all();
    if (errors_.empty()) return std::move(loaded_);
    std::string detail;
    for (const auto& line : errors_)
      detail += (detail.empty() ? "" : "\n") + line;
    return failure{load_errc::bad_keys, std::move(detail)};
  }

private:
  void add_section(const toml::key& name, const toml::node& node, const std::string& file) {
    const auto tables = table_names();
    const bool known = std::find(tables.begin(), tables.end(), name.str()) != tables.end();
    const auto where = at(file, name.source());
    if (name.str() == tenants_table)
      return add_tenants(node, [&](const toml::source_region& place) { return at(file, place); });
    if (name.str() == models_table) return models_.add(node, file);
    if (known && !node.is_table())
      return complain(where, ticked(name.str()) + " must be a table, got " + show(node));
    if (known) {
      for (const auto& [member, value] : *node.as_table())
        add_key(std::string(name.str()) + "." + std::string(member.str()), member, value, file);
    } else if (node.is_table() || node.is_array_of_tables()) {
      const auto meant = nearest(name.str(), tables);
      complain(where, "unknown table " + bracketed(name.str(), node.is_array()) +
                          (meant.empty() ? ""
                                         : "; did you mean " +
                                               bracketed(meant, meant == tenants_table) + "?"));
    } else {
      complain(where, unknown_key(name.str()));
    }
  }

  void add_key(const std::string& name, const toml::key& where, const toml::node& node,
               const std::string& file) {
    const auto now = current_name(name);
    if (!now.empty() && origins_.count(now) > 0)
      return complain(at(file, where.source()),
                      ticked(name) + " is the old name of " + ticked(now) +
                          ", which is given as well; remove " + ticked(name));
    if (const auto* k = key_named(name, at(file, where.source())))
      store(*k, node, at(file, node.source()));
  }

  /// Returns the key that has or had this name. If there is none, reports an error and returns
  /// null.
  const key* key_named(const std::string& name, const std::string& origin) {
    const auto* k = find_key(name);
    const auto now = current_name(name);
    if (k == nullptr && !now.empty()) {
      k = find_key(now);
      log::warn(origin + ": " + ticked(name) + " is now named " + ticked(now) +
                "; the next release will refuse the old name");
    }
    if (k == nullptr) complain(origin, unknown_key(name));
    return k;
  }

  void store(const key& k, const toml::node& node, const std::string& origin) {
    auto read = read_value(k, node);
    if (!read.value.has_value()) return complain(origin, text_of(read.problem));
    set(k, loaded_, *read.value);
    origins_[k.name] = origin;
  }

  /// Parses the text as a TOML value and returns it under the key "v". A text that is no TOML value
  /// becomes a string, and so does every unquoted text for a key whose value is a string (a model
  /// may be named 7).
  static toml::table parse(const key& k, const std::string& text) {
    auto parsed = parse_as_v(text);
    if (parsed && (kind_of(k) != key_kind::text || parsed->get("v")->is_string())) return *parsed;
    return toml::table{{"v", text}};
  }

  /// Replaces the list of tenants by the list in `node`. `origin_of` formats a place in the TOML
  /// text for error messages.
  template <class OriginOf>
  void add_tenants(const toml::node& node, OriginOf origin_of) {
    loaded_.tenants.clear();
    tenant_origins_.clear();
    const auto* list = node.as_array();
    if (list == nullptr || !(list->empty() || node.is_array_of_tables()))
      return complain(origin_of(node.source()),
                      "`tenants` must be a list of tables, each of which begins "
                      "with `[[tenants]]`, got " +
                          show(node));
    for (const auto& entry : *list)
      add_tenant(*entry.as_table(), origin_of);
  }

  template <class OriginOf>
  void add_tenant(const toml::table& table, OriginOf origin_of) {
    auto& added = loaded_.tenants.emplace_back();
    auto& origins = tenant_origins_.emplace_back();
    origins[tenants_table] = origin_of(table.source());
    for (const auto& [member, node] : table) {
      const auto name = std::string(tenants_table) + "." + std::string(member.str());
      const auto keys = tenant_keys();
      const auto k = std::find_if(keys.begin(), keys.end(),
                                  [&](const tenant_key& one) { return one.name == name; });
      if (k == keys.end()) {
        complain(origin_of(member.source()), unknown_member(name, tenant_keys()));
        continue;
      }
      auto read = read_value(*k, node);
      origins[k->name] = origin_of(node.source());
      if (read.value.has_value())
        set(*k, added, *read.value);
      else
        complain(origins[k->name], text_of(read.problem));
    }
    if (table.get("name") == nullptr)
      complain(origin_of(table.source()), "`tenants.name` must be given in each `[[tenants]]`");
  }

  void check_tenants() {
    std::map<std::string_view, std::string> names, digests; ///< each with its origin
    for (std::size_t i = 0; i < loaded_.tenants.size(); ++i) {
      const auto& tenant = loaded_.tenants[i];
      auto& origins = tenant_origins_[i];
      const auto refuse_second = [&](auto& seen, const std::string& text, const char* member) {
        const auto [first, fresh] = seen.emplace(text, origins[member]);
        if (!fresh)
          complain(origins[member], ticked(member) + " must differ from every other, got " +
                                        quote(text) + ", which stands at " + first->second +
                                        " as well");
      };
      if (!tenant.name.empty()) refuse_second(names, tenant.name, "tenants.name");
      for (const auto& digest : tenant.key_sha256)
        refuse_second(digests, digest, "tenants.key_sha256");
      if (tenant.key_sha256.empty() && loaded_.server.keys_file.empty() &&
          origins.count("tenants.key_sha256") == 0)
        complain(origins[tenants_table],
                 "`tenants.key_sha256` must be given, unless `server.keys_file` is; `twill key new "
                 "NAME` makes a key");
    }
  }

  void check_administrators() {
    const auto& address = loaded_.server.admin_listen;
    if (address.empty() || address.starts_with("unix:")) return;
    for (const auto& tenant : loaded_.tenants)
      if (tenant.admin) return;
    complain(origins_["server.admin_listen"],
             "`server.admin_listen` must be unix:/PATH unless a tenant has `admin = true`, because "
             "each request there needs such a tenant's key; got " +
                 quote(address));
  }

  void check_models() {
    if (models_.all().empty()) return;
    const options standard;
    for (const auto& k : all_keys())
      if (table_of(k.name) == "model" && get(k, loaded_) != get(k, standard))
        complain(origins_.count(k.name) ? origins_[k.name] : "configuration",
                 ticked(k.name) + " must not be given beside `[models.NAME]`; move it to a table "
                                  "`[models.NAME]` of its own");
    models_.check();
  }

  void check_memory() {
    const auto& kv = loaded_.kv.memory_bytes;
    const auto& device = loaded_.device.memory_bytes;
    if (device == 0 || kv <= device) return;
    complain(origins_.count("kv.memory") ? origins_["kv.memory"] : "configuration",
             "`kv.memory` must be at most `device.memory` (" + format_bytes(device) + "), got " +
                 format_bytes(kv));
  }

  void check_tiers() {
    const auto& kv = loaded_.kv;
    if (kv.keep && kv.disk_memory_bytes == 0)
      complain(origins_["kv.keep"], "`kv.keep` must be given with `kv.disk_memory`, where blocks "
                                    "are kept");
  }

  /// Checks `kv.events`: published blocks must be blocks that any prompt can find.
  void check_kv_events() {
    const auto& kv = loaded_.kv;
    std::string origin, named;
    if (!kv.events.endpoint.empty()) {
      origin = origins_["kv.events"];
      named = "`kv.events`";
      if (!models_.all().empty())
        complain(origin,
                 "`kv.events` must not be given beside `[models.NAME]`; give `kv.events` in the "
                 "table of each model that is to have events");
    }
    for (std::size_t i = 0; i < models_.all().size() && named.empty(); ++i) {
      if (models_.all()[i].kv_events.endpoint.empty()) continue;
      origin = models_.origin_of(i, "models.kv.events");
      named = "`models.kv.events`";
    }
    if (named.empty()) return;
    if (!kv.prefix_cache)
      complain(origin,
               named + " must be given with `kv.prefix_cache = true`: without it no KV block is "
                       "kept for another prompt");
    if (!kv.share_prefixes && (loaded_.tenants.size() > 1 || !loaded_.server.api_keys.empty() ||
                               !loaded_.server.keys_file.empty()))
      complain(origin,
               named +
                   " must be given with `kv.share_prefixes = true` where `server.api_keys`, "
                   "`server.keys_file` or several `[[tenants]]` are: otherwise each holder of "
                   "a key finds own blocks alone, and a router would send prompts to where only "
                   "another's are");
  }

  void check_tls() {
    const auto& server = loaded_.server;
    const bool certificate = !server.tls_certificate.empty();
    if (certificate == !server.tls_key.empty()) return;
    const auto* given = certificate ? "server.tls_certificate" : "server.tls_key";
    complain(origins_[given],
             ticked(given) + " must be given with " +
                 ticked(certificate ? "server.tls_key" : "server.tls_certificate") +
                 ", got one without the other");
  }

  void complain(const std::string& origin, const std::string& problem) {
    errors_.push_back(origin + ": " + problem);
  }

  options loaded_;
  std::map<std::string_view, std::string> origins_; ///< key -> where its value came from
  /// For each tenant: member -> origin of its value; "tenants" -> where its table begins.
  std::vector<std::map<std::string_view, std::string>> tenant_origins_;
  std::vector<std::string> errors_;
  model_tables models_{
      [this](const std::string& origin, const std::string& problem) { complain(origin, problem); }};
};

/// Reads any file that can be read to its end, including a pipe.
result<std::string, file_errc> read_configuration(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  char chunk[4096];
  while (stream.read(chunk, sizeof chunk) || stream.gcount() > 0) {
    text.append(chunk, static_cast<std::size_t>(stream.gcount()));
    if (static_cast<std::int64_t>(text.size()) > largest_file)
      return failure{file_errc::unreadable, file + ": a configuration file must be at most " +
                                                format_bytes(largest_file) + " long"};
  }
  if (!stream.eof())
    return failure{file_errc::unreadable,
                   file + ": cannot be read; it must be a file that this user may read"};
  return text;
}

} // namespace

result<setting, load_errc> parse_setting(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return failure{load_errc::bad_keys, "--set: must be KEY=VALUE, got \"" + text + "\""};
  const auto trim = [](std::string s) {
    s.erase(0, std::min(s.find_first_not_of(" \t"), s.size()));
    s.erase(s.find_last_not_of(" \t") + 1);
    return s;
  };
  return setting{"--set", trim(text.substr(0, equals)), trim(text.substr(equals + 1)), false};
}

result<options, load_errc> load_sources(const std::vector<source>& sources,
                                        const std::vector<setting>& settings) {
  loader loading;
  for (const auto& one : sources) {
    try {
      loading.add_table(parse_toml(one.text, one.file), one.file);
    } catch (const toml::parse_error& error) {
      return failure{load_errc::bad_syntax,
                     at(one.file, error.source()) + ": " + std::string(error.description())};
    }
  }
  for (const auto& s : settings)
    loading.add_setting(s);
  return loading.finish();
}

result<options, load_errc> load_text(const std::string& text, const std::string& file,
                                     const std::vector<setting>& settings) {
  return load_sources({{file, text}}, settings);
}

result<std::vector<std::string>, load_errc> list_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::error_code error;
    if (path.empty()) continue;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const auto first = static_cast<std::ptrdiff_t>(files.size());
    std::filesystem::directory_iterator entry(path, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
      if (entry->path().extension() == ".toml") files.push_back(entry->path().string());
    if (error)
      return failure{load_errc::file_unreadable,
                     path + ": the folder cannot be read: " + error.message()};
    std::sort(files.begin() + first, files.end());
  }
  if (files.size() > most_files)
    return failure{load_errc::file_unreadable, "a configuration must have at most " +
                                                   std::to_string(most_files) + " files, got " +
                                                   std::to_string(files.size())};
  return files;
}

result<options, load_errc> load_files(const std::vector<std::string>& paths,
                                      const std::vector<setting>& settings,
                                      const file_reader& read) {
  const auto files = list_files(paths);
  if (!files.ok()) return files.error();
  std::vector<source> sources;
  for (const auto& file : files.value()) {
    const auto text = read ? read(file) : read_configuration(file);
    if (!text.ok()) return failure{load_errc::file_unreadable, text.detail()};
    sources.push_back({file, text.value()});
  }
  return load_sources(sources, settings);
}

result<options, load_errc> load(const std::string& file, const std::vector<setting>& settings) {
  if (file.empty()) return load_sources({}, settings);
  const auto text = read_configuration(file);
  if (!text.ok()) return failure{load_errc::file_unreadable, text.detail()};
  return load_text(text.value(), file, settings);
}

} // namespace twill::config
