// Damaged files of stored responses that are larger than a reader's buffer: each damaged byte is
// detected, and everything before it is read as it was written.
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "net/stored/journal_format.hpp"
#include "net/stored/response_file.hpp"
#include "tests/catch.hpp"
#include "tests/net/stored/memory_files.hpp"
#include "tests/net/stored/stored_script.hpp"
#include "tests/support/damage.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;
using namespace twill::test;

namespace {

std::string pattern(std::size_t size, int number) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>((i * 29 + (i >> 8) + static_cast<std::size_t>(number) * 7) % 251);
  return bytes;
}

/// What a journal holds, as a text.
std::string text_of(const journal_content& content) {
  std::string text;
  for (const auto& [number, run] : content.runs) {
    text += std::to_string(number) + ' ' + run.whole.id + ' ' + run.whole.head;
    for (const auto& record : run.whole.records)
      text += '|' + record;
  }
  return text;
}

journal_content content_of(const std::string& bytes) {
  journal_content found;
  memory_source source(bytes);
  if (read_journal(source, found)) throw std::runtime_error("reading failed");
  return found;
}

} // namespace

TEST_CASE("each damaged byte of a large journal ends it at the frame before", "[damage]") {
  std::string journal = make_preamble(stored_kind::journal);
  std::vector<sized> sizes = {{"magic", 8}, {"version", 4}, {"zero", 4}, {"sum", 8}};
  std::vector<std::size_t> ends = {journal.size()}; // of the preamble and of each frame
  const auto add = [&](const auto& write) {
    frame_writer frame;
    frame.start();
    write(frame);
    const std::string of = " of frame " + std::to_string(ends.size());
    const std::string bytes(frame.finish(static_cast<std::int64_t>(journal.size())));
    sizes.insert(sizes.end(),
                 {{"length" + of, 4}, {"payload" + of, bytes.size() - 12}, {"sum" + of, 8}});
    journal += bytes;
    ends.push_back(journal.size());
  };
  add([](auto& f) { f.begin(1, "first", pattern(300, 1)); });
  add([](auto& f) { f.record(1, "x"), f.record(1, pattern(300'000, 2)), f.record(1, ""); });
  add([](auto& f) { f.begin(2, "second", pattern(20, 3)), f.record(1, pattern(70'000, 4)); });
  add([](auto& f) { f.record(2, pattern((1 << 20) + 77, 5)), f.record(1, "y"); });
  add([](auto& f) { f.end(1); });
  std::vector<std::string> states; // the contents after each number of frames
  for (const std::size_t end : ends)
    states.push_back(text_of(content_of(journal.substr(0, end))));
  for (std::size_t i = 1; i < states.size(); ++i)
    REQUIRE(states[i] != states[i - 1]);
  CHECK(faults_after_damage(journal, parts_in_order(sizes),
                            [&](const damage& d, const std::string& damaged) -> std::string {
                              const auto found = content_of(damaged);
                              if (d.at < ends[0])
                                return found.preamble != preamble_state::right && found.runs.empty()
                                           ? ""
                                           : "a damaged preamble was taken";
                              std::size_t n = 0; // complete frames before the damage
                              while (n + 1 < ends.size() && ends[n + 1] <= d.at)
                                ++n;
                              if (static_cast<std::size_t>(found.good_bytes) != ends[n])
                                return "it is good up to " + std::to_string(found.good_bytes) +
                                       ", not " + std::to_string(ends[n]);
                              return text_of(found) == states[n] ? "" : "it holds something else";
                            }) == "");
}

TEST_CASE("each damaged byte of a large response is noticed, and its beginning apart from its body",
          "[damage]") {
  const stored_bytes whole{
      "resp_1", pattern(70'000, 1), {"", pattern(1, 2), pattern(300'000, 3), pattern(1 << 20, 4)}};
  const auto bytes = response_file_bytes(whole).value();
  std::vector<sized> sizes = {{"magic", 8},
                              {"version", 4},
                              {"zero", 4},
                              {"sum of these", 8},
                              {"size of the id", 4},
                              {"size of the head", 8},
                              {"number of records", 8},
                              {"size of the body", 8},
                              {"sum of the body", 8},
                              {"id", whole.id.size()},
                              {"head", whole.head.size()},
                              {"sum of the beginning", 8}};
  std::size_t body_at = 0;
  for (const sized& one : sizes)
    body_at += one.size;
  for (std::size_t i = 0; i < whole.records.size(); ++i) {
    const std::string of = " of record " + std::to_string(i);
    sizes.push_back({"length" + of, 4});
    sizes.push_back({"bytes" + of, whole.records[i].size()});
  }
  CHECK(faults_after_damage(
            bytes, parts_in_order(sizes),
            [&](const damage& d, const std::string& damaged) -> std::string {
              memory_source source(damaged);
              if (read_response(source).code() != std::errc::bad_message) return "it was read";
              memory_source again(damaged);
              const auto begun = read_response_beginning(again);
              const bool reached = !d.within_part() || d.at < body_at;
              if (begun.ok() == reached)
                return reached ? "its beginning was read" : "its beginning was refused";
              if (begun.ok() && (begun.value().id != whole.id || begun.value().head != whole.head ||
                                 begun.value().n_records != whole.records.size() ||
                                 static_cast<std::size_t>(begun.value().body_at) != body_at))
                return "its beginning is another";
              return "";
            }) == "");
}
