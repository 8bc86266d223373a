#include "net/kv_events/kv_wire.hpp"

#include <bit>
#include <string_view>
#include <utility>

namespace twill::net {
namespace {

using actors::kv_event;
using actors::kv_medium;

/// Appends values in the MessagePack format (github.com/msgpack/msgpack, spec.md). Numbers are
/// big-endian, and unsigned integers have their shortest form.
class packer {
public:
  explicit packer(std::string& out) : out_(out) {}

  void nil() { byte(0xc0); }
  void number(std::uint64_t n) {
    if (n < 0x80)
      byte(n);
    else if (n <= 0xff)
      head(0xcc, n, 1);
    else if (n <= 0xffff)
      head(0xcd, n, 2);
    else
      n <= 0xffffffff ? head(0xce, n, 4) : head(0xcf, n, 8);
  }
  void number(double n) { head(0xcb, std::bit_cast<std::uint64_t>(n), 8); }
  /// `t` must have at most 31 bytes.
  void text(std::string_view t) {
    byte(0xa0 | t.size());
    out_.append(t);
  }
  void array(std::size_t n) { n < 16 ? byte(0x90 | n) : head(0xdc, n, 2); }
  /// `n` must be at most 15.
  void map(std::size_t n) { byte(0x80 | n); }

private:
  void byte(std::uint64_t b) { out_.push_back(static_cast<char>(b)); }
  void head(unsigned char kind, std::uint64_t n, int n_bytes) {
    char bytes[9] = {static_cast<char>(kind)};
    for (int i = n_bytes; i > 0; --i, n >>= 8)
      bytes[i] = static_cast<char>(n & 0xff);
    out_.append(bytes, static_cast<std::size_t>(n_bytes) + 1);
  }
  std::string& out_;
};

constexpr std::uint64_t rank = 0; ///< a daemon is one data-parallel rank

/// The names that vLLM uses for media. vLLM has no name for disks; routers know the name "DISK".
std::string_view name_of(kv_medium medium) {
  switch (medium) {
  case kv_medium::host:
    return "CPU";
  case kv_medium::disk:
    return "DISK";
  case kv_medium::device:
    break;
  }
  return "GPU";
}

/// Writes one event: its type and its members, with the members' names only in the map form.
class event_writer {
public:
  event_writer(std::string& out, kv_event_form form)
      : out_(out), is_map_(form == kv_event_form::map) {}

  void write(const kv_event& event) {
    switch (event.kind) {
    case actors::kv_event_kind::stored:
      return stored(*event.block, event.medium);
    case actors::kv_event_kind::removed:
      return removed(*event.block, event.medium);
    case actors::kv_event_kind::cleared:
      return begin("AllBlocksCleared", 0);
    }
  }

private:
  void begin(std::string_view type, std::size_t n_members) {
    is_map_ ? out_.map(n_members + 1) : out_.array(n_members + 1);
    name("type");
    out_.text(type);
  }
  void name(std::string_view member) {
    if (is_map_) out_.text(member);
  }
  void hashes(const actors::kv_block& block) {
    name("block_hashes");
    out_.array(1);
    out_.number(block.name);
  }
  void stored(const actors::kv_block& block, kv_medium medium) {
    begin("BlockStored", 7);
    hashes(block);
    name("parent_block_hash");
    block.parent ? out_.number(*block.parent) : out_.nil();
    name("token_ids");
    out_.array(block.tokens.size());
    for (const std::int32_t token : block.tokens)
      out_.number(static_cast<std::uint64_t>(static_cast<std::uint32_t>(token)));
    name("block_size");
    out_.number(static_cast<std::uint64_t>(block.tokens.size()));
    name("lora_id");
    out_.nil();
    name("medium");
    out_.text(name_of(medium));
    name("lora_name");
    out_.nil();
  }
  void removed(const actors::kv_block& block, kv_medium medium) {
    begin("BlockRemoved", 2);
    hashes(block);
    name("medium");
    out_.text(name_of(medium));
  }

  packer out_;
  bool is_map_;
};

/// An upper bound of the event's encoded size.
std::size_t bytes_of(const kv_event& event) {
  constexpr std::size_t members = 150, token = 5;
  return members +
         (event.kind == actors::kv_event_kind::stored ? token * event.block->tokens.size() : 0);
}

std::string payload(std::span<const kv_event> events, double unix_s, kv_event_form form) {
  std::string out;
  out.reserve(longest_kv_payload);
  packer batch(out);
  batch.array(3);
  batch.number(unix_s);
  batch.array(events.size());
  event_writer writer(out, form);
  for (const kv_event& event : events)
    writer.write(event);
  batch.number(rank);
  return out;
}

} // namespace

std::vector<std::string> kv_payloads(std::span<const actors::kv_event> events, double unix_s,
                                     kv_event_form form) {
  std::vector<std::string> all;
  while (!events.empty()) {
    std::size_t n = 0;
    for (std::size_t bytes = 0; n < events.size(); ++n) {
      bytes += bytes_of(events[n]);
      if (n > 0 && bytes > longest_kv_payload) break;
    }
    all.push_back(payload(events.first(n), unix_s, form));
    events = events.subspan(n);
  }
  return all;
}

std::string kv_sequence(std::uint64_t number) {
  std::string bytes(8, '\0');
  for (std::size_t i = 8; i-- > 0; number >>= 8)
    bytes[i] = static_cast<char>(number & 0xff);
  return bytes;
}

} // namespace twill::net
