#include "net/protocol/json/json_parse.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <boost/json/parse_options.hpp>
#include <limits>
#include <string>

#include "net/protocol/json/tree_builder.hpp"
#include "net/protocol/json/utf8.hpp"

namespace twill::net {
namespace {

namespace json = boost::json;

struct json_limits {
  std::size_t depth;
  std::size_t values;
};

/// The number of values is limited because a tree takes some 60 bytes per value, so a body of
/// "[1,1,..." would need 30 times its size.
constexpr json_limits of_clients{64, 2'000'000};
constexpr json_limits of_own{128, std::numeric_limits<std::size_t>::max()};

/// An upper bound of the number of values: counts the characters outside strings that separate or
/// begin values.
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

/// Returns the error message for a text that begins with a byte order mark, which JSON must not
/// have (RFC 8259, section 8.1). Returns an empty string if there is no such mark.
std::string name_order_mark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf"))
    return "body must be JSON without a byte order mark, got one (EF BB BF) at its start; save it "
           "as UTF-8 without BOM";
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return "body must be UTF-8, got the byte order mark of UTF-16 at its start";
  return {};
}

/// True if the escape of a high surrogate ends at this byte or up to two bytes before it.
bool ends_high_surrogate(std::string_view text, std::size_t byte) {
  constexpr std::size_t escape_bytes = 6; // of "\\ud83d"
  const auto is_high = [](std::string_view escape) {
    return escape.starts_with("\\u") && (escape[2] == 'd' || escape[2] == 'D') &&
           std::string_view("89abAB").find(escape[3]) != std::string_view::npos;
  };
  for (std::size_t back = escape_bytes; back <= escape_bytes + 2 && back <= byte; ++back)
    if (is_high(text.substr(byte - back, escape_bytes))) return true;
  return false;
}

/// Describes the error at this byte, in the parser's words unless these do not show what to
/// correct.
std::string describe_fault(const boost::system::error_code& error, std::string_view text,
                           std::size_t byte) {
  if (error == json::error::illegal_leading_surrogate ||
      error == json::error::illegal_trailing_surrogate || ends_high_surrogate(text, byte))
    return "an escape of a lone surrogate (\\ud800 to \\udfff), where a character beyond U+FFFF "
           "takes two escapes, \\ud800 to \\udbff and then \\udc00 to \\udfff,";
  return error.message();
}

result<value> parse_within(json_limits most, std::string_view text) {
  if (auto mark = name_order_mark(text); !mark.empty())
    return fail(
        {mark.find("UTF-16") == mark.npos ? errc::bad_json : errc::bad_utf8, std::move(mark), ""});
  if (const auto bad = find_invalid_utf8(text); bad != std::string_view::npos)
    return fail(
        {errc::bad_utf8, "body must be valid UTF-8, ill-formed at " + position(text, bad), ""});

  if (count_values(text) > most.values)
    return fail({errc::bad_json,
                 "body must hold at most " + std::to_string(most.values) + " JSON values, got more",
                 ""});

  json::parse_options options;
  options.max_depth = most.depth;
  json::basic_parser<tree_builder> parser(options);
  boost::system::error_code error;
  const auto consumed = parser.write_some(false, text.data(), text.size(), error);
  if (!error.failed() && consumed < text.size()) error = json::error::extra_data;
  if (error == json::error::too_deep)
    return fail({errc::bad_json,
                 "body must have at most " + std::to_string(most.depth) +
                     " objects and lists within each other, got more at " +
                     position(text, consumed),
                 ""});
  if (parser.handler().beyond_double())
    return fail({errc::bad_json, "body must hold numbers that fit a double", ""});
  if (error.failed())
    return fail({errc::bad_json,
                 "body must be valid JSON: " + describe_fault(error, text, consumed) + " at " +
                     position(text, consumed),
                 ""});
  return parser.handler().take();
}

} // namespace

result<value> parse_json(std::string_view text) {
  return parse_within(of_clients, text);
}

result<value> parse_own_json(std::string_view text) {
  return parse_within(of_own, text);
}

} // namespace twill::net
