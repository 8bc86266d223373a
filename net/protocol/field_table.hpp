// field_table: tables which describe the members of request bodies, used both to read the bodies
// and to generate "/openapi.json". The tables are immutable; any thread may read them.
//
// Each row of type bound_field reads its member into a struct by itself. A member that needs more
// than a type and a range is read by other code, and is described by a plain field_row beside that
// code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/assert.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

enum class field_use : std::uint8_t {
  honoured,
  no_effect, ///< accepted without effect, because many clients always send the field
  refused,   ///< rejected unless off, because ignoring the field would give a wrong answer
};

struct field_row;
using field_rows = std::vector<field_row>;

struct field_row {
  std::string_view name;
  std::string_view schema; ///< JSON Schema of the accepted values, without the outer braces
  std::string_view note;   ///< what the field does; of a refused field, the rule in the error
  field_use use = field_use::honoured;
  bool required = false;
  field_rows (*members)() = nullptr; ///< rows of the members of an object; null if they have none
};

/// The field `model`, which every route with a body accepts and find_model() reads.
inline constexpr field_row model_row{"model", R"("type":"string")",
                                     "A served model; without one the first."};

namespace schema {
inline constexpr std::string_view boolean = R"("type":"boolean")";
inline constexpr std::string_view number = R"("type":"number")";
inline constexpr std::string_view integer = R"("type":"integer")";
inline constexpr std::string_view string = R"("type":"string")";
inline constexpr std::string_view object = R"("type":"object")";
inline constexpr std::string_view list = R"("type":"array")";
inline constexpr std::string_view any = "";
inline constexpr std::string_view strings =
    R"("type":["string","array"],"items":{"type":"string"})";
inline constexpr std::string_view token_ids =
    R"("type":"array","items":{"type":"integer","minimum":0})";
} // namespace schema

/// Describes one member of a request body that is read into one member of the struct `Target`.
template <class Target>
struct bound_field {
  field_row row;
  void (*read)(fields& from, std::string_view name, Target& to);
};

namespace detail {

inline void read_member(fields& from, std::string_view name, std::vector<std::string>& to) {
  from.read_strings(name, to);
}
template <class T>
void read_member(fields& from, std::string_view name, T& to) {
  from.read(name, to);
}

constexpr std::string_view schema_of(const bool*) {
  return schema::boolean;
}
constexpr std::string_view schema_of(const float*) {
  return schema::number;
}
constexpr std::string_view schema_of(const std::int32_t*) {
  return schema::integer;
}
constexpr std::string_view schema_of(const std::optional<std::uint64_t>*) {
  return schema::integer;
}
constexpr std::string_view schema_of(const std::string*) {
  return schema::string;
}
constexpr std::string_view schema_of(const std::vector<std::string>*) {
  return schema::strings;
}
constexpr std::string_view schema_of(const std::vector<std::int32_t>*) {
  return schema::token_ids;
}

template <class Target, class T>
constexpr std::string_view schema_of_member(T Target::*) {
  return schema_of(static_cast<const T*>(nullptr));
}

} // namespace detail

/// Makes the bound fields of the struct `Target`.
template <class Target>
struct fields_of {
  /// A field that is read into the struct's member `Member`; the member's type decides which JSON
  /// values are accepted. `schema` replaces the JSON Schema that the type implies.
  template <auto Member>
  static constexpr bound_field<Target> member(std::string_view name, std::string_view note,
                                              std::string_view schema = {}) {
    return {{name, schema.empty() ? detail::schema_of_member(Member) : schema, note},
            [](fields& from, std::string_view at, Target& to) {
              detail::read_member(from, at, to.*Member);
            }};
  }
  /// An integer that must be at least `Least`.
  template <auto Member, std::int32_t Least>
  static constexpr bound_field<Target> at_least(std::string_view name, std::string_view schema,
                                                std::string_view note) {
    return {{name, schema, note}, [](fields& from, std::string_view at, Target& to) {
              from.read(at, to.*Member, Least);
            }};
  }
};

template <class Table, class Target>
void read_fields(fields& from, const Table& table, Target& to) {
  for (const auto& field : table)
    field.read(from, field.row.name, to);
}

/// Returns the field of `table` whose name is `name`. The table must contain one.
template <class Table>
const auto& field_of(const Table& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const auto& field) { return field.row.name == name; });
  TWILL_ASSERT(found != table.end(), "field_of() without such a field");
  return *found;
}

template <class Table>
void add_rows(field_rows& to, const Table& table) {
  for (const auto& field : table)
    if constexpr (requires { field.row; })
      to.push_back(field.row);
    else
      to.push_back(field);
}

/// Removes every row whose name an earlier row has.
field_rows unique_rows(field_rows rows);

/// Refuses each field that a row of `rows` marks as refused, unless the given value means off:
/// false, 0, "", or empty.
void reject_listed(fields& from, std::span<const field_row> rows);

} // namespace twill::net
