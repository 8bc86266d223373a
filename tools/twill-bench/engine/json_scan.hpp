// json_scan: finds single fields in a JSON text without building a tree.
//
// The load generator reads only two or three fields of a streamed event; one pass over the bytes
// costs about a fiftieth of parsing them. All functions take and return views into the caller's
// text. An empty view means that the value is missing or not well formed. Keys are compared as
// written, without resolving escapes. The functions are pure, never read outside the view and never
// recurse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twill::bench::json_scan {

/// Iterates over the members of an object in one pass over its text: `for (members each(object);
/// each.next();)`. The iteration ends early where the text is not well formed.
class members {
public:
  explicit members(std::string_view object);
  bool next();
  std::string_view key() const { return key_; }     ///< as written, without its quotes
  std::string_view value() const { return value_; } ///< raw

private:
  std::string_view object_, key_, value_;
  /// Offset of the next key, or of the object's end when there is no further key.
  std::size_t at_ = 0;
};

/// The raw value of `key` in an object.
std::string_view member(std::string_view object, std::string_view key);
/// The raw value at `index` of an array.
std::string_view element(std::string_view array, std::size_t index);
/// Number of elements of an array; 0 when `array` is not an array.
std::size_t length(std::string_view array);

/// Whether `raw` is a value other than null; false when it is empty.
bool present(std::string_view raw);
std::optional<std::int64_t> integer(std::string_view raw);
/// The whole numbers of an array, in one pass; other elements are left out.
std::vector<std::int32_t> integers(std::string_view array);
/// The characters between the quotes of a string, with escapes left as they are; empty when `raw`
/// is not a string.
std::string_view string_body(std::string_view raw);
/// A string value with its escapes resolved; lone surrogates become U+FFFD.
std::string decode(std::string_view raw);

} // namespace twill::bench::json_scan
