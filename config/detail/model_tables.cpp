#include "config/detail/model_tables.hpp"

#include <algorithm>
#include <utility>

#include "config/detail/rules.hpp"

namespace twill::config::detail {

namespace {

/// Whether keys of a model stand in a table of this name within the model's.
bool is_inner_table(std::string_view name) {
  const auto keys = model_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const model_key& k) {
    return member_of(k.name).starts_with(std::string(name) + ".");
  });
}

/// Where the longest member begins that a model has: `kv.events` of "models.small.kv.events".
std::size_t dot_before_member(std::string_view key) {
  const auto last = key.rfind('.');
  if (last == std::string_view::npos || last == 0) return last;
  const auto before = key.rfind('.', last - 1);
  if (before == std::string_view::npos) return last;
  const auto keys = model_keys();
  return std::any_of(
             keys.begin(), keys.end(),
             [&](const model_key& k) { return member_of(k.name) == key.substr(before + 1); })
             ? before
             : last;
}

} // namespace

void model_tables::add(const toml::node& node, const std::string& file) {
  const auto* tables = node.as_table();
  if (tables == nullptr)
    return complain_(at(file, node.source()),
                     "`models` must be a table of tables, each of which begins with "
                     "`[models.NAME]`, got " +
                         show(node));
  // In the order in which they stand in the file.
  std::vector<std::pair<const toml::key*, const toml::node*>> entries;
  for (const auto& [name, entry] : *tables)
    entries.emplace_back(&name, &entry);
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    const auto &x = a.first->source().begin, &y = b.first->source().begin;
    return std::pair(x.line, x.column) < std::pair(y.line, y.column);
  });
  for (const auto& [name, entry] : entries) {
    const auto where = at(file, name->source());
    if (!entry->is_table())
      return complain_(where, "`models." + std::string(name->str()) +
                                  "` must be a table, which begins with `[models.NAME]`, got " +
                                  show(*entry));
    const auto index = place_of(name->str(), where);
    if (!index) continue;
    add_members(*index, *entry->as_table(), file, "");
  }
}

/// `inside` begins the names of members of a table within the model's: "kv." of `kv.events`.
void model_tables::add_members(std::size_t index, const toml::table& members,
                               const std::string& file, const std::string& inside) {
  for (const auto& [member, value] : members) {
    const std::string name = inside + std::string(member.str());
    if (value.is_table() && is_inner_table(name))
      add_members(index, *value.as_table(), file, name + ".");
    else if (const auto* k = key_named(name, at(file, member.source())))
      store(index, *k, value, at(file, value.source()));
  }
}

void model_tables::add_setting(const setting& given) {
  const auto dot = dot_before_member(given.key);
  const auto begin = models_table.size() + 1;
  if (dot < begin + 1)
    return complain_(given.origin, ticked(given.key) + " must be models.NAME.KEY, such as "
                                                       "models.small.path");
  const auto* k = key_named(given.key.substr(dot + 1), given.origin);
  if (k == nullptr) return;
  const auto index = place_of(given.key.substr(begin, dot - begin), given.origin);
  if (!index) return;
  auto parsed = given.literal ? std::nullopt : parse_as_v(given.value);
  if (parsed && kind_of(*k) == key_kind::text && !parsed->get("v")->is_string()) parsed.reset();
  const auto as_text = toml::table{{"v", given.value}};
  store(*index, *k, *(parsed ? *parsed : as_text).get("v"), given.origin);
}

void model_tables::check() {
  std::map<std::string_view, std::string> names, endpoints; ///< each with its origin
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto& model = all_[i];
    if (model.model.path.empty())
      complain_(origin_of(i, models_table),
                "`models.path` must be given in `[models." + model.key + "]`");
    const auto refuse_second = [&](const std::string& name, const char* member) {
      const auto [first, fresh] = names.emplace(name, origin_of(i, member));
      if (!fresh)
        complain_(origin_of(i, member), "the name " + quote(name) + " in `[models." + model.key +
                                            "]` must differ from every other name and alias; " +
                                            "it stands at " + first->second + " as well");
    };
    refuse_second(model.id(), "models.name");
    if (const auto& endpoint = model.kv_events.endpoint;
        !endpoint.empty() && !endpoint.ends_with(":0")) {
      const auto [first, fresh] = endpoints.emplace(endpoint, origin_of(i, "models.kv.events"));
      if (!fresh)
        complain_(origin_of(i, "models.kv.events"),
                  "`models.kv.events` must be another address for each model, got " +
                      quote(endpoint) + ", which stands at " + first->second + " as well");
    }
    for (const auto& alias : model.aliases)
      refuse_second(alias, "models.aliases");
  }
}

/// The place of the model of this table, which is made where there is none.
std::optional<std::size_t> model_tables::place_of(std::string_view table,
                                                  const std::string& origin) {
  if (!is_model_key(table)) {
    complain_(origin, "the NAME of `[models.NAME]` must be " + model_key_words() + ", got " +
                          quote(table.substr(0, 200)));
    return std::nullopt;
  }
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return one.key == table; });
  if (found != all_.end()) return static_cast<std::size_t>(found - all_.begin());
  all_.emplace_back().key = table;
  origins_.emplace_back()[models_table] = origin;
  return all_.size() - 1;
}

const model_key* model_tables::key_named(std::string_view member, const std::string& origin) {
  const auto name = std::string(models_table) + "." + std::string(member);
  const auto keys = model_keys();
  const auto k = std::find_if(keys.begin(), keys.end(),
                              [&](const model_key& one) { return one.name == name; });
  if (k != keys.end()) return &*k;
  complain_(origin, unknown_member(name, keys));
  return nullptr;
}

void model_tables::store(std::size_t index, const model_key& k, const toml::node& node,
                         const std::string& origin) {
  auto read = read_value(k, node);
  if (!read.value.has_value()) return complain_(origin, text_of(read.problem));
  set(k, all_[index], *read.value);
  origins_[index][k.name] = origin;
}

const std::string& model_tables::origin_of(std::size_t index, std::string_view member) const {
  const auto& of = origins_[index];
  const auto found = of.find(member);
  return found != of.end() ? found->second : of.at(models_table);
}

} // namespace twill::config::detail
