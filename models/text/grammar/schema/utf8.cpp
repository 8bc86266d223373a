#include "models/text/grammar/schema/utf8.hpp"

#include <utf8proc.h>

#include <map>

namespace twill::models::grammar {

std::vector<std::uint32_t> code_points_of(std::string_view text) {
  std::vector<std::uint32_t> out;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t c = 0;
    const auto n =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &c);
    out.push_back(n > 0 ? static_cast<std::uint32_t>(c) : 0xfffd);
    at += n > 0 ? static_cast<std::size_t>(n) : 1;
  }
  return out;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}

code_points code_points_of_category(const std::string& name) {
  static const std::map<std::string, std::string> long_names{{"Letter", "L"},
                                                             {"Uppercase_Letter", "Lu"},
                                                             {"Lowercase_Letter", "Ll"},
                                                             {"Mark", "M"},
                                                             {"Number", "N"},
                                                             {"Decimal_Number", "Nd"},
                                                             {"Punctuation", "P"},
                                                             {"Symbol", "S"},
                                                             {"Separator", "Z"},
                                                             {"Other", "C"}};
  const auto known = long_names.find(name);
  const std::string& wanted = known != long_names.end() ? known->second : name;
  std::vector<code_point_range> ranges;
  if (wanted.empty() || wanted.size() > 2) return {};
  for (std::uint32_t c = 0; c <= last_code_point; ++c) {
    const std::string category = utf8proc_category_string(static_cast<utf8proc_int32_t>(c));
    if (category.starts_with(wanted)) ranges.push_back({c, c});
  }
  return code_points(std::move(ranges));
}

} // namespace twill::models::grammar
