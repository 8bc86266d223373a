// stored_bytes: the content of one stored response, in the form in which the files hold it. It is a
// plain value, and any thread may use it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace twill::net {

/// The code in this header and in the file formats treats `head` and `records` as opaque bytes.
struct stored_bytes {
  std::string id;   ///< see is_stored_id()
  std::string head; ///< the stored_head, as write_head() writes it
  /// The events in order, as write_record() writes them, and resume marks.
  std::vector<std::string> records;
};

/// Returns whether `id` can be the id of a stored response: 1 to 96 of the characters
/// "A-Z", "a-z", "0-9", "_", "." and "-". Such an id can be part of a file name and is never a
/// path.
inline bool is_stored_id(std::string_view id) {
  return !id.empty() && id.size() <= 96 &&
         id.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
             std::string_view::npos;
}

} // namespace twill::net
