// fields: typed reading of one JSON object, where the first broken rule is kept and the rest
// skipped.
//
// Not thread-safe; refers to the tree it was given. A null member counts as absent and leaves the
// target as it was. Messages read "`field` must be RULE, got VALUE".
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/value.hpp"
#include "net/api_error.hpp"

namespace twill::net {

class fields {
public:
  /// `path` is put before names in messages: "stream_options." for nested objects.
  explicit fields(const value& object, std::string path = {});

  bool ok() const noexcept { return !error_.has_value(); }
  const api_error& error() const { return *error_; }

  /// The member, or nullptr when it is absent or null.
  const value* find(std::string_view name) const noexcept;

  /// All members, in the order of the text; those that are null as well.
  std::span<const value_object::value_type> members() const noexcept;

  void read(std::string_view name, bool& to);
  void read(std::string_view name, std::string& to);
  void read(std::string_view name, float& to);
  void read(std::string_view name, std::int32_t& to,
            std::int64_t least = std::numeric_limits<std::int32_t>::min(),
            std::int64_t most = std::numeric_limits<std::int32_t>::max());
  void read(std::string_view name, std::optional<std::uint64_t>& to);
  void read(std::string_view name, std::vector<std::int32_t>& to);
  /// A string or a list of strings.
  void read_strings(std::string_view name, std::vector<std::string>& to);
  /// nullptr when absent; an error when it is no object.
  const value* object(std::string_view name);

  void require(std::string_view name);
  void reject(std::string_view name, std::string_view rule, const value& given);
  /// Keeps an error found elsewhere.
  void reject(api_error error);

private:
  const value& object_;
  std::string path_;
  std::optional<api_error> error_;
};

/// An integral number, given as 3 or 3.0; nothing for anything else.
std::optional<std::int64_t> as_integer(const value& v) noexcept;

} // namespace twill::net
