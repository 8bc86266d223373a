#include "net/protocol/json/json_parse.hpp"

#include <algorithm>
#include <boost/json/error.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parser.hpp>
#include <boost/json/stream_parser.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <string>

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

/// False when a number is outside the range of a double.
bool convert(const json::value& from, value& to) {
  switch (from.kind()) {
  case json::kind::null:
    to = nullptr;
    return true;
  case json::kind::bool_:
    to = from.get_bool();
    return true;
  case json::kind::int64:
    to = static_cast<std::int64_t>(from.get_int64());
    return true;
  case json::kind::uint64:
    to = static_cast<double>(from.get_uint64());
    return true;
  case json::kind::double_:
    to = from.get_double();
    return std::isfinite(from.get_double());
  case json::kind::string:
    to = std::string(from.get_string().data(), from.get_string().size());
    return true;
  case json::kind::array: {
    value_list list(from.get_array().size());
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!convert(from.get_array()[i], list[i])) return false;
    to = std::move(list);
    return true;
  }
  case json::kind::object: {
    value_object object;
    object.reserve(from.get_object().size());
    for (const auto& member : from.get_object()) {
      object.emplace_back(std::string(member.key().data(), member.key().size()), value());
      if (!convert(member.value(), object.back().second)) return false;
    }
    to = std::move(object);
    return true;
  }
  }
  return false;
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

  json::monotonic_resource memory;
  json::parse_options options;
  options.max_depth = max_depth;
  json::stream_parser parser(json::storage_ptr(), options);
  parser.reset(&memory);
  boost::system::error_code error;
  const auto consumed = parser.write_some(text.data(), text.size(), error);
  if (!error.failed() && consumed < text.size()) error = json::error::extra_data;
  if (!error.failed()) parser.finish(error);
  if (error == json::error::too_deep)
    return fail({errc::bad_json,
                 "body must have at most " + std::to_string(max_depth) +
                     " objects and lists within each other, got more at " +
                     position(text, consumed),
                 ""});
  if (error.failed())
    return fail({errc::bad_json,
                 "body must be valid JSON: " + error.message() + " at " + position(text, consumed),
                 ""});
  value tree;
  if (!convert(parser.release(), tree))
    return fail({errc::bad_json, "body must hold numbers that fit a double", ""});
  return tree;
}

} // namespace twill::net
