#include "actors/trace/replay.hpp"

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "actors/trace/replayed_batcher.hpp"
#include "actors/trace/trace_line.hpp"

namespace twill::actors {

namespace {

/// A step of 65,536 prompts takes a tenth of that.
constexpr std::size_t longest_line = std::size_t{16} << 20;

enum class read_line : std::uint8_t { whole, cut, end };

read_line next_line(std::istream& in, std::string& line) {
  line.clear();
  std::streambuf& bytes = *in.rdbuf();
  for (int c = bytes.sbumpc(); c != std::streambuf::traits_type::eof(); c = bytes.sbumpc()) {
    if (c == '\n') return read_line::whole;
    if (line.size() == longest_line) throw bad_trace("the line is too long");
    line += static_cast<char>(c);
  }
  return line.empty() ? read_line::end : read_line::cut;
}

void replay_line(const trace_line& line,
                 std::map<std::int64_t, std::unique_ptr<replayed_batcher>>& batchers,
                 replay_outcome& outcome) {
  const std::int64_t stream = line.number("s");
  auto found = batchers.find(stream);
  if (line.what() == "begin") {
    if (found != batchers.end())
      throw bad_trace("scheduler " + std::to_string(stream) + " begins twice");
    if (const auto version = line.number("version"); version != 2 && version != 3)
      throw bad_trace("only traces of versions 2 and 3 can be replayed, got version " +
                      std::to_string(version));
    batchers.emplace(stream, std::make_unique<replayed_batcher>(line));
    ++outcome.schedulers;
    return;
  }
  if (found == batchers.end())
    throw bad_trace("scheduler " + std::to_string(stream) + " has no beginning");
  if (line.is_decision()) {
    found->second->compare(line);
    ++outcome.decisions;
    return;
  }
  if (line.what() == "arrive") ++outcome.requests;
  found->second->see(line);
}

} // namespace

replay_outcome replay(std::istream& trace) {
  using verdict = replay_outcome::verdict;
  replay_outcome outcome;
  std::map<std::int64_t, std::unique_ptr<replayed_batcher>> batchers;
  std::string text;
  try {
    for (;;) {
      ++outcome.line;
      const read_line got = next_line(trace, text);
      outcome.cut = got == read_line::cut;
      if (got != read_line::whole) break;
      replay_line(trace_line(text), batchers, outcome);
      ++outcome.lines;
    }
    if (outcome.schedulers == 0) throw bad_trace("it has no line that begins a scheduler");
  } catch (const bad_trace& why) {
    outcome.what_came = verdict::unreadable;
    outcome.what = why.what();
  } catch (const other_decision& why) {
    outcome.what_came = verdict::different;
    outcome.what = why.what();
  }
  return outcome;
}

} // namespace twill::actors
