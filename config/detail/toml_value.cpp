#include "config/detail/toml_value.hpp"

#include <sstream>
#include <vector>

#include "config/base/units.hpp"
#include "config/detail/rules.hpp"

namespace twill::config::detail {
namespace {

std::optional<key_value> read_number(key_kind kind, const toml::node& node) {
  if (const auto* number = node.as_integer()) return key_value{number->get()};
  const auto* text = node.as_string();
  if (text == nullptr || kind == key_kind::count) return std::nullopt;
  if (kind == key_kind::bytes) {
    if (const auto bytes = parse_bytes(text->get())) return key_value{*bytes};
  } else if (const auto time = parse_duration(text->get())) {
    return key_value{std::int64_t{time->count()}};
  }
  return std::nullopt;
}

std::optional<key_value> read_list(const toml::node& node) {
  const auto* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> list;
  for (const auto& entry : *array) {
    const auto* text = entry.as_string();
    if (text == nullptr) return std::nullopt;
    list.push_back(text->get());
  }
  return key_value{std::move(list)};
}

std::optional<key_value> read_typed(key_kind kind, const toml::node& node) {
  if (kind == key_kind::list) return read_list(node);
  if (kind == key_kind::flag) {
    if (const auto* flag = node.as_boolean()) return key_value{flag->get()};
    return std::nullopt;
  }
  if (kind == key_kind::number) {
    if (const auto* number = node.as_floating_point()) return key_value{number->get()};
    if (const auto* number = node.as_integer())
      return key_value{static_cast<double>(number->get())};
    return std::nullopt;
  }
  if (kind != key_kind::text) return read_number(kind, node);
  if (const auto* text = node.as_string()) return key_value{text->get()};
  return std::nullopt;
}

const char* type_rule(key_kind kind) {
  switch (kind) {
  case key_kind::text:
    return "a string";
  case key_kind::count:
    return "an integer";
  case key_kind::bytes:
    return "a byte count such as \"512 MiB\" or 4096";
  case key_kind::time:
    return "a time such as \"30s\", \"500ms\" or integer milliseconds";
  case key_kind::flag:
    return "true or false";
  case key_kind::number:
    return "a number";
  case key_kind::list:
    break;
  }
  return "a list of strings";
}

} // namespace

std::string show(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (const auto* array = node.as_array())
    return "a list of " + std::to_string(array->size()) +
           (array->size() == 1 ? " entry" : " entries");
  std::string text;
  if (const auto* string = node.as_string()) {
    text = quote(string->get());
  } else {
    std::ostringstream stream;
    node.visit([&](const auto& any) { stream << any; });
    text = stream.str();
  }
  constexpr std::size_t longest = 120;
  if (text.size() <= longest) return text;
  std::size_t cut = longest;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80)
    --cut;
  return text.substr(0, cut) + "...";
}

read_outcome read_value(const value_form& k, const toml::node& node) {
  const auto kind = k.kind;
  const bool hidden = k.secret && node.is_value();
  const auto given = hidden ? std::string("a value that is not shown") : show(node);
  auto value = read_typed(kind, node);
  if (const auto* text = node.as_string(); text != nullptr && k.single)
    value = key_value{std::vector<std::string>{text->get()}};
  if (!value.has_value())
    return {std::nullopt,
            {std::string(k.name),
             (k.single ? "be a string or " : "be ") + std::string(type_rule(kind)), given}};
  if (!k.possible.holds(*value))
    return {std::nullopt, {std::string(k.name), "be " + k.possible.words, given}};
  return {std::move(value), {}};
}

} // namespace twill::config::detail
