// tree_builder: the handler for Boost.JSON's parser that builds a tree of values from the parsed
// text.
//
// Whole numbers keep their digits; all other numbers become the nearest double. One object serves
// one parse on one thread. Nothing here recurses: the members and items of containers that have not
// ended are kept on two stacks.
#pragma once

#include <boost/json/error.hpp>
#include <boost/json/string_view.hpp>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "config/base/value.hpp"

namespace twill::net {

class tree_builder {
  using text = boost::json::string_view;
  using error = boost::json::error_code;

public:
  // The size of the request body bounds all of these sizes.
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = max_object_size;
  static constexpr std::size_t max_key_size = max_object_size;
  static constexpr std::size_t max_string_size = max_object_size;

  value take() { return std::move(root_); }
  /// True if a number outside the range of a double ended the parse.
  bool beyond_double() const { return beyond_double_; }

  bool on_document_begin(error&) { return true; }
  bool on_document_end(error&) { return true; }
  bool on_object_begin(error&) { return open(true); }
  bool on_array_begin(error&) { return open(false); }
  bool on_object_end(std::size_t n, error&) {
    const auto first = members_.end() - static_cast<std::ptrdiff_t>(n);
    value_object made(std::make_move_iterator(first), std::make_move_iterator(members_.end()));
    members_.erase(first, members_.end());
    in_object_.pop_back();
    merge_repeated_keys(made);
    return put(value(std::move(made)));
  }
  bool on_array_end(std::size_t n, error&) {
    const auto first = items_.end() - static_cast<std::ptrdiff_t>(n);
    value_list made(std::make_move_iterator(first), std::make_move_iterator(items_.end()));
    items_.erase(first, items_.end());
    in_object_.pop_back();
    return put(value(std::move(made)));
  }
  bool on_key_part(text part, std::size_t, error&) { return gather(part); }
  bool on_key(text part, std::size_t, error&) {
    members_.emplace_back(whole(part), value());
    pending_.clear();
    return true;
  }
  bool on_string_part(text part, std::size_t, error&) { return gather(part); }
  bool on_string(text part, std::size_t, error&) { return put_text(value(whole(part))); }
  bool on_number_part(text part, error&) { return gather(part); }
  bool on_int64(std::int64_t number, text, error&) { return put_text(value(number)); }
  bool on_uint64(std::uint64_t, text part, error&) {
    return put_text(value::whole_number(whole(part)));
  }
  /// Converts the digits again, because Boost.JSON's `number` is rounded quickly, not exactly.
  bool on_double(double number, text part, error& failed) {
    const std::string_view digits = whole(part);
    double nearest = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), nearest);
    if (read.ec == std::errc::result_out_of_range) {
      if (std::abs(number) > 1) {
        beyond_double_ = true;
        failed = boost::json::error::exponent_overflow;
        return false;
      }
      nearest = digits.front() == '-' ? -0.0 : 0.0;
    }
    const bool is_whole = digits.find_first_of(".eE") == std::string_view::npos;
    return put_text(is_whole ? value::whole_number(digits) : value(nearest));
  }
  bool on_bool(bool flag, error&) { return put(value(flag)); }
  bool on_null(error&) { return put(value()); }
  bool on_comment_part(text, error&) { return true; }
  bool on_comment(text, error&) { return true; }

private:
  bool open(bool is_object) {
    in_object_.push_back(is_object);
    return true;
  }
  bool gather(text part) {
    pending_.append(part.data(), part.size());
    return true;
  }
  /// Returns the whole text that ends with `part`; valid until pending_ changes.
  std::string_view whole(text part) {
    if (pending_.empty()) return {part.data(), part.size()};
    gather(part);
    return pending_;
  }
  bool put_text(value made) {
    pending_.clear();
    return put(std::move(made));
  }
  bool put(value made) {
    if (in_object_.empty())
      root_ = std::move(made);
    else if (in_object_.back())
      members_.back().second = std::move(made);
    else
      items_.push_back(std::move(made));
    return true;
  }

  value root_;
  std::vector<bool> in_object_; ///< one entry per open container: true for an object
  // What the open containers hold so far; the entries of the innermost container come last.
  value_object members_;
  value_list items_;
  std::string pending_; ///< the beginning of an unfinished key, text or number
  bool beyond_double_ = false;
};

} // namespace twill::net
