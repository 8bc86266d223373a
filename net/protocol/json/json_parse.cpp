#include "net/protocol/json/json_parse.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <boost/json/parse_options.hpp>
#include <string>

#include "net/protocol/json/tree_builder.hpp"
#include "net/protocol/json/utf8.hpp"

namespace twill::net {
namespace {

namespace json = boost::json;

constexpr std::size_t max_depth = 64;
/// A tree takes some 60 bytes per value, so a body of "[1,1,..." would need 30 times its size.
constexpr std::size_t max_values = 2'000'000;

/// At least as many as there are values: what separates or opens them, outside strings.
std::size_t count_values(std::string_view text) {
  std::size_t count = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == ',' || c == '[' || c == '{') {
      ++count;
    }
  }
  return count;
}

std::string position(std::string_view text, std::size_t byte) {
  byte = std::min(byte, text.size());
  const auto before = text.substr(0, byte);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto newline = before.rfind('\n');
  const auto column = newline == std::string_view::npos ? byte + 1 : byte - newline;
  return "byte " + std::to_string(byte) + " (line " + std::to_string(line) + ", column " +
         std::to_string(column) + ")";
}

} // namespace

result<value> parse_json(std::string_view text) {
  if (const auto bad = find_invalid_utf8(text); bad != std::string_view::npos)
    return fail(
        {errc::bad_utf8, "body must be valid UTF-8, ill-formed at " + position(text, bad), ""});

  if (count_values(text) > max_values)
    return fail({errc::bad_json,
                 "body must hold at most " + std::to_string(max_values) + " JSON values, got more",
                 ""});

  json::parse_options options;
  options.max_depth = max_depth;
  json::basic_parser<tree_builder> parser(options);
  boost::system::error_code error;
  const auto consumed = parser.write_some(false, text.data(), text.size(), error);
  if (!error.failed() && consumed < text.size()) error = json::error::extra_data;
  if (error == json::error::too_deep)
    return fail({errc::bad_json,
                 "body must have at most " + std::to_string(max_depth) +
                     " objects and lists within each other, got more at " +
                     position(text, consumed),
                 ""});
  if (parser.handler().beyond_double())
    return fail({errc::bad_json, "body must hold numbers that fit a double", ""});
  if (error.failed())
    return fail({errc::bad_json,
                 "body must be valid JSON: " + error.message() + " at " + position(text, consumed),
                 ""});
  return parser.handler().take();
}

} // namespace twill::net
