#include "tests/net/stored/hostile_files.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

#include "net/stored/checksum.hpp"
#include "net/stored/journal_format.hpp"
#include "net/stored/little_endian.hpp"
#include "net/stored/response_file.hpp"

namespace twill::testing {
namespace {

using namespace net;

std::string journal_of(const journal_content& content) {
  std::string bytes = make_preamble(stored_kind::journal);
  std::uint32_t number = 0;
  frame_writer frame;
  for (const auto& [old_number, run] : content.runs) {
    frame.start();
    frame.begin(++number, run.whole.id, run.whole.head);
    for (const auto& record : run.whole.records)
      frame.record(number, record);
    bytes += frame.finish(static_cast<std::int64_t>(bytes.size()));
  }
  return bytes;
}

bool are_same(const journal_content& a, const journal_content& b) {
  return std::equal(
      a.runs.begin(), a.runs.end(), b.runs.begin(), b.runs.end(), [](const auto& x, const auto& y) {
        return x.second.whole.id == y.second.whole.id &&
               x.second.whole.head == y.second.whole.head &&
               x.second.whole.records == y.second.whole.records && x.second.bytes == y.second.bytes;
      });
}

const char* broken_by_journal(std::string_view bytes) {
  journal_content found;
  memory_source source(bytes);
  if (read_journal(source, found)) return "bytes in memory can be read";
  if (found.preamble != preamble_state::right)
    return found.good_bytes == 0 && found.runs.empty() ? nullptr : "no journal holds nothing";
  if (found.good_bytes < preamble_bytes || found.good_bytes > source.bytes())
    return "the good bytes are some of all";
  std::int64_t live = 0;
  std::set<std::string> ids;
  for (const auto& [number, run] : found.runs) {
    live += run.bytes;
    if (number == 0 || number > found.last_number) return "a number was given by a begin";
    if (!is_stored_id(run.whole.id) || !ids.insert(run.whole.id).second)
      return "each response runs once";
  }
  if (found.dead_bytes < 0 || live + found.dead_bytes + preamble_bytes > found.good_bytes)
    return "entries are some of the good bytes";
  journal_content prefix;
  memory_source good(bytes.substr(0, static_cast<std::size_t>(found.good_bytes)));
  if (read_journal(good, prefix) || prefix.good_bytes != found.good_bytes ||
      !are_same(prefix, found))
    return "what is behind the good bytes changes nothing";
  const auto written = journal_of(found);
  journal_content again;
  memory_source rewritten(written);
  if (read_journal(rewritten, again) || again.good_bytes != rewritten.bytes() ||
      !are_same(again, found))
    return "what was read can be written and read again";
  return nullptr;
}

const char* broken_by_response(std::string_view bytes) {
  memory_source source(bytes);
  const auto beginning = read_response_beginning(source);
  const auto whole = read_response(source);
  if (!whole.ok()) return nullptr;
  if (!beginning.ok() || beginning.value().id != whole.value().id ||
      beginning.value().head != whole.value().head)
    return "the beginning of a whole response can be read alone";
  return response_file_bytes(whole.value()).value() == bytes ? nullptr
                                                             : "a response is written in one way";
}

void seal_frames(std::string& bytes) {
  constexpr auto overhead = static_cast<std::size_t>(frame_overhead_bytes);
  for (std::size_t at = preamble_bytes; bytes.size() - at > overhead;) {
    const auto most = bytes.size() - at - overhead;
    const auto n =
        std::min<std::size_t>(get_integer<std::uint32_t>(std::string_view(bytes).substr(at)), most);
    put_integer_at(bytes, at, static_cast<std::uint32_t>(n));
    put_integer_at(
        bytes, at + 4 + n,
        stored_checksum(std::string_view(bytes).substr(at, 4 + n), static_cast<std::int64_t>(at)));
    at += n + overhead;
  }
}

void seal_response(std::string& bytes) {
  constexpr std::size_t begin = preamble_bytes, lengths = 36, sum = 8;
  if (bytes.size() < begin + lengths + sum) return;
  const std::string_view view = bytes;
  const auto most = bytes.size() - begin - lengths - sum;
  const auto id = std::min<std::uint64_t>(get_integer<std::uint32_t>(view.substr(begin)), most);
  const auto head =
      std::min<std::uint64_t>(get_integer<std::uint64_t>(view.substr(begin + 4)), most - id);
  const auto sum_at = begin + lengths + id + head;
  const auto body_at = sum_at + sum;
  put_integer_at(bytes, begin + 28,
                 stored_checksum(view.substr(body_at), static_cast<std::int64_t>(body_at)));
  put_integer_at(bytes, sum_at, stored_checksum(view.substr(begin, sum_at - begin), begin));
}

} // namespace

std::string with_right_sums(std::string bytes) {
  constexpr std::size_t summed = 16;
  if (bytes.size() < preamble_bytes) return bytes;
  put_integer_at(bytes, summed, stored_checksum(std::string_view(bytes).substr(0, summed), 0));
  if (bytes.starts_with("twillrsp"))
    seal_response(bytes);
  else
    seal_frames(bytes);
  return bytes;
}

const char* broken_promise(std::string_view bytes) {
  const char* broken = broken_by_journal(bytes);
  return broken != nullptr ? broken : broken_by_response(bytes);
}

std::string sample_journal() {
  std::string bytes = make_preamble(stored_kind::journal);
  frame_writer frame;
  const auto finish = [&] {
    bytes += frame.finish(static_cast<std::int64_t>(bytes.size()));
    frame.start();
  };
  frame.start();
  frame.begin(1, "resp_1", "head");
  finish();
  frame.begin(2, "resp_2", "");
  frame.record(1, "record");
  frame.record(2, "");
  finish();
  frame.end(1);
  frame.begin(3, "resp_1", "another head");
  frame.record(3, "another record");
  finish();
  return bytes;
}

std::string sample_response() {
  return response_file_bytes({"resp_1", "head", {"record", "", "the end"}}).value();
}

} // namespace twill::testing
