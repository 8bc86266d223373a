// folder_names: the names of the files in the folder of stored responses. The names of different
// kinds of files never collide. The functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/stored/stored_bytes.hpp"

namespace twill::net {

inline constexpr const char* lock_name = ".lock";
inline constexpr std::string_view response_suffix = ".response";
inline constexpr std::string_view new_response_suffix = ".response.new";

inline std::string response_name(const std::string& id) {
  return id + std::string(response_suffix);
}
/// The name of a response's file while it is being written.
inline std::string new_response_name(const std::string& id) {
  return id + std::string(new_response_suffix);
}

/// The id in a name that ends with `suffix`; nothing if the name has another form.
inline std::optional<std::string> id_in(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  name.remove_suffix(suffix.size());
  if (!is_stored_id(name)) return std::nullopt;
  return std::string(name);
}

} // namespace twill::net
