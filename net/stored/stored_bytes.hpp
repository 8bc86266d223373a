// stored_bytes: one response as the files of stored responses hold it. Plain value, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace twill::net {

/// `head` and `records` are opaque bytes here.
struct stored_bytes {
  std::string id;                   ///< see is_stored_id()
  std::string head;                 ///< what was asked, as the service writes it
  std::vector<std::string> records; ///< its events, in order
};

/// Whether a response of this name can be stored: 1 to 96 of A-Z a-z 0-9 _ . -, so that it is part
/// of a file's name and never a path.
inline bool is_stored_id(std::string_view id) {
  return !id.empty() && id.size() <= 96 &&
         id.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
             std::string_view::npos;
}

} // namespace twill::net
