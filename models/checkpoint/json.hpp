// json: JSON texts (config files, index files, headers, vocabularies) as values.
//
// The functions are pure; any thread may call them. Objects keep the order of their keys; of equal
// keys the last value wins, at the place of the first, as in Python. Integers are kept with all
// their digits, even if they do not fit int64; all other numbers become double. Nesting deeper than
// max_json_depth is refused and nothing here recurses, so hostile text costs memory in proportion
// to its size and no stack. Failures of parsing are bad_format; their message begins with the name
// of the text (a file's path) and the line, as in "config.json:3: ".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "config/base/value.hpp"
#include "models/errc.hpp"

namespace twill::models {

class mapped_file;

inline constexpr int max_json_depth = 128;

/// Parses `text`. `where` names it in messages.
result<value> parse_json(std::string_view text, const std::string& where);

/// Reads and parses a regular file of at most `max_bytes`; fails with file_unreadable or
/// bad_format. Python's NaN, Infinity and -Infinity are taken as numbers. If `read` is not null,
/// *read is set to the mapped file that was read.
result<value> read_json_file(const std::string& path, std::int64_t max_bytes,
                             std::shared_ptr<const mapped_file>* read = nullptr);

} // namespace twill::models
