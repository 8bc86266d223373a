// id_ranges: writes lists of numbers as short text, in which consecutive numbers become a range:
// "1-4,9,12-13". The functions are pure.
#pragma once

#include <cstdint>
#include <string>

namespace twill {

/// Writes such a list number by number, in their order.
class id_ranges {
public:
  void add(std::uint64_t id) {
    if (n_ > 0 && id == last_ + 1) {
      last_ = id;
    } else {
      end_range();
      first_ = last_ = id;
    }
    ++n_;
  }
  /// Adds a text to the list as a separate item.
  void add_text(const std::string& item) {
    end_range();
    n_ = 0;
    separate();
    text_ += item;
  }
  /// The list so far.
  std::string text() {
    end_range();
    n_ = 0;
    return text_;
  }

private:
  void separate() {
    if (!text_.empty()) text_ += ',';
  }
  void end_range() {
    if (n_ == 0) return;
    separate();
    text_ += std::to_string(first_);
    if (last_ > first_) text_ += '-' + std::to_string(last_);
  }

  std::string text_;
  std::uint64_t first_ = 0, last_ = 0;
  std::uint64_t n_ = 0; ///< numbers since the last separate text
};

template <class Ids>
std::string range_text(const Ids& ids) {
  id_ranges list;
  for (const auto id : ids)
    list.add(static_cast<std::uint64_t>(id));
  return list.text();
}

} // namespace twill
