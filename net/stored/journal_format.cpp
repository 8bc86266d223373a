#include "net/stored/journal_format.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "net/stored/checksum.hpp"
#include "net/stored/little_endian.hpp"

namespace twill::net {
namespace {

constexpr std::size_t frame_length_bytes = 4;
constexpr std::size_t frame_sum_bytes = 8;

struct entry {
  journal_kind kind = journal_kind::end;
  std::uint32_t number = 0;
  std::string_view bytes;
  // These two are set only if `kind` is begin:
  std::string_view id;
  std::string_view head;

  std::int64_t all_bytes() const {
    return entry_overhead_bytes + static_cast<std::int64_t>(bytes.size());
  }
};

/// Removes the next entry from the front of the payload of a frame (see journal_format.hpp) and
/// returns it. Returns nothing if the entry is not well-formed.
std::optional<entry> take_entry(std::string_view& payload) {
  constexpr auto overhead = static_cast<std::size_t>(entry_overhead_bytes);
  if (payload.size() < overhead) return std::nullopt;
  entry e;
  const auto kind = static_cast<unsigned char>(payload[0]);
  if (kind < 1 || kind > 3) return std::nullopt;
  e.kind = static_cast<journal_kind>(kind);
  e.number = get_integer<std::uint32_t>(payload.substr(1));
  const auto n = get_integer<std::uint32_t>(payload.substr(5));
  payload.remove_prefix(overhead);
  if (n > payload.size()) return std::nullopt;
  e.bytes = payload.substr(0, n);
  payload.remove_prefix(n);
  if (e.kind == journal_kind::end && n != 0) return std::nullopt;
  if (e.kind == journal_kind::begin) {
    if (n == 0) return std::nullopt;
    const std::size_t id_bytes = static_cast<unsigned char>(e.bytes[0]);
    if (id_bytes > n - 1) return std::nullopt;
    e.id = e.bytes.substr(1, id_bytes);
    e.head = e.bytes.substr(1 + id_bytes);
    if (!is_stored_id(e.id)) return std::nullopt;
  }
  return e;
}

/// Reads a source through a buffer, so that many small frames take few reads.
class window {
public:
  explicit window(byte_source& from) : from_(from) {}

  /// Sets `to` to the bytes [at, at + n), which must lie inside the source. `to` is valid until the
  /// next call.
  std::error_code view(std::int64_t at, std::size_t n, std::string_view& to) {
    if (at < begin_ || at + static_cast<std::int64_t>(n) > begin_ + held()) {
      constexpr std::size_t ahead = 256 * 1024;
      const auto left = static_cast<std::size_t>(from_.bytes() - at);
      buffer_.resize(std::min(std::max(n, ahead), left));
      begin_ = at;
      if (const auto error = from_.read(buffer_.data(), buffer_.size(), at)) {
        buffer_.clear();
        return error;
      }
    }
    to = std::string_view(buffer_).substr(static_cast<std::size_t>(at - begin_), n);
    return {};
  }

private:
  std::int64_t held() const { return static_cast<std::int64_t>(buffer_.size()); }

  byte_source& from_;
  std::string buffer_;
  std::int64_t begin_ = 0;
};

class reader {
public:
  reader(byte_source& from, journal_content& to) : from_(from), window_(from), to_(to) {}

  std::error_code read_all() {
    if (from_.bytes() < preamble_bytes) return {};
    std::string_view bytes;
    if (const auto error = window_.view(0, preamble_bytes, bytes)) return error;
    to_.preamble = check_preamble(bytes, stored_kind::journal);
    if (to_.preamble != preamble_state::right) return {};
    to_.good_bytes = preamble_bytes;
    for (;;) {
      std::string_view payload;
      if (const auto error = next_payload(payload)) return error;
      if (payload.empty() || !is_valid(payload)) return {};
      apply(payload);
      to_.good_bytes += frame_overhead_bytes + static_cast<std::int64_t>(payload.size());
    }
  }

private:
  /// Sets `payload` to the payload of the next frame (see journal_format.hpp), which begins at
  /// offset `good_bytes`. `payload` stays empty if there is no complete frame with a right
  /// checksum.
  std::error_code next_payload(std::string_view& payload) {
    const auto left = from_.bytes() - to_.good_bytes;
    if (left < frame_overhead_bytes) return {};
    std::string_view bytes;
    if (const auto error = window_.view(to_.good_bytes, frame_length_bytes, bytes)) return error;
    const auto n = get_integer<std::uint32_t>(bytes);
    if (n > most_payload_bytes || n > left - frame_overhead_bytes) return {};
    const auto summed = frame_length_bytes + n;
    if (const auto error = window_.view(to_.good_bytes, summed + frame_sum_bytes, bytes))
      return error;
    if (get_integer<std::uint64_t>(bytes.substr(summed)) ==
        stored_checksum(bytes.substr(0, summed), to_.good_bytes))
      payload = bytes.substr(frame_length_bytes, n);
    return {};
  }

  /// Returns whether all entries in the payload of a frame keep the rules of journal_format.hpp. If
  /// not, no part of the frame is used.
  bool is_valid(std::string_view payload) const {
    std::uint32_t last = to_.last_number;
    std::set<std::uint32_t> ended;
    std::map<std::string_view, std::uint32_t> begun;
    while (!payload.empty()) {
      const auto e = take_entry(payload);
      if (!e.has_value()) return false;
      if (e->kind == journal_kind::begin) {
        if (e->number == 0 || e->number - 1 != last) return false;
        const auto old = numbers_.find(std::string(e->id));
        if (old != numbers_.end() && !ended.contains(old->second)) return false;
        if (const auto own = begun.find(e->id); own != begun.end() && !ended.contains(own->second))
          return false;
        begun[e->id] = last = e->number;
        continue;
      }
      const bool runs =
          to_.runs.contains(e->number) || (e->number > to_.last_number && e->number <= last);
      if (!runs || ended.contains(e->number)) return false;
      if (e->kind == journal_kind::end) ended.insert(e->number);
    }
    return true;
  }

  void apply(std::string_view payload) {
    while (!payload.empty()) {
      const auto e = take_entry(payload);
      if (e->kind == journal_kind::begin) {
        to_.last_number = e->number;
        numbers_[std::string(e->id)] = e->number;
        auto& run = to_.runs[e->number];
        run.whole.id = e->id;
        run.whole.head = e->head;
        run.bytes = e->all_bytes();
        continue;
      }
      const auto found = to_.runs.find(e->number);
      if (e->kind == journal_kind::record) {
        found->second.whole.records.emplace_back(e->bytes);
        found->second.bytes += e->all_bytes();
        continue;
      }
      to_.dead_bytes += found->second.bytes + e->all_bytes();
      numbers_.erase(found->second.whole.id);
      to_.runs.erase(found);
    }
  }

  byte_source& from_;
  window window_;
  journal_content& to_;
  /// Numbers of the running responses, by id.
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

} // namespace

void frame_writer::start() {
  constexpr std::size_t most_kept = 8 * 1024 * 1024;
  if (frame_.capacity() > most_kept) frame_ = {};
  frame_.assign(frame_length_bytes, '\0');
}

void frame_writer::entry(journal_kind kind, std::uint32_t number, std::size_t bytes) {
  put_integer(frame_, static_cast<std::uint8_t>(kind));
  put_integer(frame_, number);
  put_integer(frame_, static_cast<std::uint32_t>(bytes));
}

void frame_writer::begin(std::uint32_t number, std::string_view id, std::string_view head) {
  entry(journal_kind::begin, number, 1 + id.size() + head.size());
  put_integer(frame_, static_cast<std::uint8_t>(id.size()));
  frame_ += id;
  frame_ += head;
}

void frame_writer::record(std::uint32_t number, std::string_view bytes) {
  entry(journal_kind::record, number, bytes.size());
  frame_ += bytes;
}

void frame_writer::end(std::uint32_t number) {
  entry(journal_kind::end, number, 0);
}

bool frame_writer::is_empty() const {
  return frame_.size() == frame_length_bytes;
}

std::size_t frame_writer::payload_bytes() const {
  return frame_.size() - frame_length_bytes;
}

std::string_view frame_writer::finish(std::int64_t place) {
  if (payload_bytes() > most_payload_bytes) return {};
  put_integer_at(frame_, 0, static_cast<std::uint32_t>(payload_bytes()));
  put_integer(frame_, stored_checksum(frame_, place));
  return frame_;
}

std::error_code read_journal(byte_source& from, journal_content& to) {
  return reader(from, to).read_all();
}

} // namespace twill::net
