// json_scan: finds single fields in a JSON text without building a tree.
//
// A streamed event is read for two or three fields; walking its bytes once is some fifty times
// cheaper than parsing it. Every function takes and returns views into the caller's text; an empty
// view means "not there" or "not well formed". Keys are compared as written (no escapes in keys).
// Never reads outside the view, never recurses. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twill::bench::json_scan {

/// The members of an object, one after the other, in one pass over its text:
/// `for (members each(object); each.next();)`. Ends early where the text is not well formed.
class members {
public:
  explicit members(std::string_view object);
  bool next();
  std::string_view key() const { return key_; }     ///< as written, without its quotes
  std::string_view value() const { return value_; } ///< raw

private:
  std::string_view object_, key_, value_;
  std::size_t at_ = 0; ///< of the next key; the object's end when there is none
};

/// The raw value of `key` in an object.
std::string_view member(std::string_view object, std::string_view key);
/// The raw value at `index` of an array.
std::string_view element(std::string_view array, std::size_t index);
/// Number of elements of an array; 0 when it is none.
std::size_t length(std::string_view array);

/// True for a value that is there and is not null.
bool present(std::string_view raw);
std::optional<std::int64_t> integer(std::string_view raw);
/// The whole numbers of an array, in one pass; what is none is left out.
std::vector<std::int32_t> integers(std::string_view array);
/// What stands between the quotes, escapes left as they are; empty for anything but a string.
std::string_view string_body(std::string_view raw);
/// A string value with its escapes resolved; lone surrogates become U+FFFD.
std::string decode(std::string_view raw);

} // namespace twill::bench::json_scan
