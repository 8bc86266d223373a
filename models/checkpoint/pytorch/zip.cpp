#include "models/checkpoint/pytorch/zip.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "models/checkpoint/quoted.hpp"

namespace twill::models::pytorch {
namespace {

using bytes = std::span<const std::byte>;

constexpr std::uint32_t end_magic = 0x06054b50, end64_magic = 0x06064b50,
                        locator64_magic = 0x07064b50, entry_magic = 0x02014b50,
                        local_magic = 0x04034b50;
constexpr std::uint64_t end_bytes = 22, locator64_bytes = 20, end64_bytes = 56, entry_bytes = 46,
                        local_bytes = 30;
constexpr std::uint16_t zip64_extra = 1;

/// Returns the little-endian number at `at`. The caller must have checked that it lies within
/// `from`.
template <class T>
T load(bytes from, std::uint64_t at) {
  T number{};
  std::memcpy(&number, from.data() + at, sizeof number);
  return number;
}

bool inside(bytes all, std::uint64_t at, std::uint64_t n) {
  return at <= all.size() && n <= all.size() - at;
}

std::string_view text(bytes from, std::uint64_t at, std::uint64_t n) {
  return {reinterpret_cast<const char*>(from.data()) + at, static_cast<std::size_t>(n)};
}

failure bad(std::string why) {
  return {errc::bad_format, "zip archive: " + std::move(why)};
}

struct directory {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
};

result<directory> find_directory(bytes all) {
  constexpr std::uint64_t most_comment = 0xffff;
  if (all.size() < end_bytes) return bad("too short");
  const std::uint64_t last = all.size() - end_bytes;
  std::uint64_t at = last;
  while (load<std::uint32_t>(all, at) != end_magic) {
    if (at == 0 || last - at >= most_comment) return bad("no directory at its end");
    --at;
  }
  directory d{load<std::uint32_t>(all, at + 16), load<std::uint32_t>(all, at + 12),
              load<std::uint16_t>(all, at + 10)};
  if (at >= locator64_bytes && load<std::uint32_t>(all, at - locator64_bytes) == locator64_magic) {
    const auto end64 = load<std::uint64_t>(all, at - locator64_bytes + 8);
    if (!inside(all, end64, end64_bytes) || load<std::uint32_t>(all, end64) != end64_magic)
      return bad("its zip64 directory is not where it says");
    d = {load<std::uint64_t>(all, end64 + 48), load<std::uint64_t>(all, end64 + 40),
         load<std::uint64_t>(all, end64 + 32)};
  }
  if (!inside(all, d.offset, d.bytes) || d.entries > d.bytes / entry_bytes)
    return bad("its directory passes the end of the file");
  return d;
}

/// Sizes and position of an entry, as its record in the central directory states them.
struct placement {
  std::uint64_t stored;
  std::uint64_t unpacked;
  std::uint64_t local;
};

/// Replaces each number that is 0xffffffff by the number in the zip64 extra field.
bool apply_zip64(bytes extra, placement& p) {
  constexpr std::uint64_t marked = 0xffffffff;
  if (p.stored != marked && p.unpacked != marked && p.local != marked) return true;
  std::uint64_t at = 0;
  while (inside(extra, at, 4)) {
    const auto id = load<std::uint16_t>(extra, at);
    const std::uint64_t n = load<std::uint16_t>(extra, at + 2);
    at += 4;
    if (!inside(extra, at, n)) return false;
    if (id != zip64_extra) {
      at += n;
      continue;
    }
    const bytes field = extra.subspan(at, n);
    std::uint64_t taken = 0;
    for (std::uint64_t* number : {&p.unpacked, &p.stored, &p.local}) {
      if (*number != marked) continue;
      if (!inside(field, taken, 8)) return false;
      *number = load<std::uint64_t>(field, taken);
      taken += 8;
    }
    return true;
  }
  return false;
}

/// True if `extra` is a sequence of extra fields, each after its id and size, up to the last byte.
bool is_row_of_fields(bytes extra) {
  while (inside(extra, 0, 4)) {
    const std::uint64_t n = load<std::uint16_t>(extra, 2);
    if (!inside(extra, 4, n)) return false;
    extra = extra.subspan(4 + n);
  }
  return extra.empty();
}

result<zip_entry> read_entry(bytes all, bytes record, std::string_view name, bytes extra) {
  const auto flags = load<std::uint16_t>(record, 8);
  const auto method = load<std::uint16_t>(record, 10);
  placement p{load<std::uint32_t>(record, 20), load<std::uint32_t>(record, 24),
              load<std::uint32_t>(record, 42)};
  if ((flags & 1U) != 0 || method != 0)
    return failure{errc::unsupported, "zip archive: entry " + quoted_name(name) +
                                          " must be stored, it is " +
                                          ((flags & 1U) != 0 ? "encrypted" : "compressed")};
  if (!apply_zip64(extra, p) || p.stored != p.unpacked)
    return bad("entry " + quoted_name(name) + ": contradicting sizes");
  if (!inside(all, p.local, local_bytes) || load<std::uint32_t>(all, p.local) != local_magic)
    return bad("entry " + quoted_name(name) + " is not where the directory says");
  const std::uint64_t own_name = p.local + local_bytes;
  const std::uint64_t own_name_bytes = load<std::uint16_t>(all, p.local + 26);
  const std::uint64_t own_extra = own_name + own_name_bytes;
  const std::uint64_t own_extra_bytes = load<std::uint16_t>(all, p.local + 28);
  const std::uint64_t begin = own_extra + own_extra_bytes;
  // With a wrong length here, the entry's bytes would be read from a wrong position.
  if (!inside(all, own_name, own_name_bytes + own_extra_bytes) ||
      text(all, own_name, own_name_bytes) != name ||
      !is_row_of_fields(all.subspan(own_extra, own_extra_bytes)))
    return bad("entry " + quoted_name(name) + ": its own header contradicts the directory");
  if (!inside(all, begin, p.stored))
    return bad("entry " + quoted_name(name) + " passes the end of the file");
  return zip_entry{name, all.subspan(begin, p.stored)};
}

} // namespace

result<std::vector<zip_entry>> read_zip(bytes archive) {
  auto found = find_directory(archive);
  if (!found.ok()) return found.error();
  const directory& d = found.value();
  const bytes records = archive.subspan(d.offset, d.bytes);
  std::vector<zip_entry> entries;
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < d.entries; ++i) {
    if (!inside(records, at, entry_bytes) || load<std::uint32_t>(records, at) != entry_magic)
      return bad("directory record " + std::to_string(i) + " is broken");
    const std::uint64_t name_bytes = load<std::uint16_t>(records, at + 28);
    const std::uint64_t extra_bytes = load<std::uint16_t>(records, at + 30);
    const std::uint64_t comment_bytes = load<std::uint16_t>(records, at + 32);
    const std::uint64_t names = at + entry_bytes;
    if (!inside(records, names, name_bytes + extra_bytes + comment_bytes))
      return bad("directory record " + std::to_string(i) + " passes the directory's end");
    auto entry =
        read_entry(archive, records.subspan(at, entry_bytes), text(records, names, name_bytes),
                   records.subspan(names + name_bytes, extra_bytes));
    if (!entry.ok()) return entry.error();
    entries.push_back(entry.value());
    at = names + name_bytes + extra_bytes + comment_bytes;
  }
  return entries;
}

} // namespace twill::models::pytorch
