// fields: typed reading of the members of one JSON object. The first error is kept; reads after an
// error do nothing.
//
// Only one thread at a time may use a `fields`. It refers to the JSON object, which must outlive
// it. A null member counts as absent. If a member is absent, reading it leaves the target
// unchanged. Error messages have the form "`field` must be RULE, got VALUE".
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/breach.hpp"
#include "config/base/value.hpp"
#include "net/api_error.hpp"

namespace twill::net {

class fields {
public:
  /// `path` is prepended to member names in messages, such as "stream_options." for a nested
  /// object.
  explicit fields(const value& object, std::string path = {});

  bool ok() const noexcept { return !error_.has_value(); }
  const api_error& error() const { return *error_; }

  /// The member, or nullptr when it is absent or null.
  const value* find(std::string_view name) const noexcept;

  /// All members, in the order of the text. Includes members whose value is null.
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
  /// Returns the member, or nullptr if it is absent. A member that is not an object is an error.
  const value* object(std::string_view name);

  void require(std::string_view name);
  void reject(std::string_view name, std::string_view rule, const value& given);
  /// Records what other code has found.
  void reject(const breach& found);
  void reject(api_error error);

private:
  const value& object_;
  std::string path_;
  std::optional<api_error> error_;
};

/// The value of an integral number, written as 3 or 3.0; nullopt for any other value.
std::optional<std::int64_t> as_integer(const value& v) noexcept;

} // namespace twill::net
