// stop_matcher: finds stop strings in text that arrives in parts, and never emits a part of one.
//
// Pure; each choice has its own. The match that ends first wins; among matches with one end, the
// longest. The result does not depend on where the text was cut. Text that may be the beginning of
// a stop string is held back.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace twill::actors {

class stop_matcher {
public:
  /// Empty entries are ignored. `include`: the stop string itself is part of the text.
  stop_matcher(const std::vector<std::string>& stops, bool include);

  /// Appends to `out` the text that became certain; true when a stop string was found, after which
  /// nothing more may be pushed.
  bool push(std::string_view text, std::string& out);
  /// Appends `text` and whatever is held back without looking for stop strings in `text`.
  void pass(std::string_view text, std::string& out);
  /// Appends what is held back to `out`, because the text is over.
  void flush(std::string& out);
  /// The stop string that was found.
  const std::string& found() const { return found_; }

private:
  std::vector<std::string> stops_;
  std::string held_; ///< text held back; shorter than the longest stop string
  std::string found_;
  bool include_;
};

} // namespace twill::actors
