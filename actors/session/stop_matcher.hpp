// stop_matcher: finds stop strings in text that arrives in parts, and never emits a part of a stop
// string.
//
// Pure; each choice has a matcher of its own. The match that ends first wins; of matches that end
// at one position, the longest wins. The result does not depend on where the text was cut. Text
// that may be the beginning of a stop string is held back.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace twill::actors {

class stop_matcher {
public:
  /// Empty entries of `stops` are ignored. `include`: the stop string is kept as part of the text.
  stop_matcher(const std::vector<std::string>& stops, bool include);

  /// Appends the text that became final to `out`. Returns true if a stop string was found; nothing
  /// more may be pushed after that.
  bool push(std::string_view text, std::string& out);
  /// Appends to `out` the text that is held back (it may begin a stop string) and then `text`,
  /// without looking for stop strings in `text`.
  void pass(std::string_view text, std::string& out);
  /// Appends the text that is held back to `out`, because the text has ended.
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
