#include "net/protocol/field_table.hpp"

#include <set>

namespace twill::net {
namespace {

bool is_off(const value& v) {
  if (const auto* flag = v.as_bool()) return !*flag;
  if (const auto* list = v.as_list()) return list->empty();
  if (const auto* text = v.as_string()) return text->empty();
  if (const auto integer = as_integer(v)) return *integer == 0;
  return false;
}

} // namespace

field_rows unique_rows(field_rows rows) {
  std::set<std::string_view> seen;
  std::erase_if(rows, [&](const field_row& row) { return !seen.insert(row.name).second; });
  return rows;
}

void reject_listed(fields& from, std::span<const field_row> rows) {
  for (const auto& row : rows)
    if (row.use == field_use::refused)
      if (const auto* v = from.find(row.name); v != nullptr && !is_off(*v))
        return from.reject(row.name, row.note, *v);
}

} // namespace twill::net
