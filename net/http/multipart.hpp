// multipart: splits a multipart/form-data body into its parts (RFC 7578). The functions are pure;
// the parts refer to the body.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/api_error.hpp"

namespace twill::net {

struct form_part {
  std::string name;
  std::string filename; ///< empty unless the part is a file
  std::string_view data;
};

/// Accepts at most 64 parts. A truncated body or another content type is errc::invalid_field.
result<std::vector<form_part>> parse_multipart(std::string_view content_type,
                                               std::string_view body);

/// Returns the part with this name; nullptr if there is none.
const form_part* find_part(const std::vector<form_part>& parts, std::string_view name);

} // namespace twill::net
