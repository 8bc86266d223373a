#include "tools/twill-synth/zip_writer.hpp"

#include <array>
#include <cstring>

namespace twill::synth {
namespace {

constexpr std::uint64_t data_alignment = 64;
constexpr std::uint32_t in_zip64 = 0xffffffffU; // means that the value is in the ZIP64 field
constexpr std::uint16_t version_needed = 45;
constexpr std::int64_t checksum_at = 14; // offset of the checksum in a local header

/// Tables for a CRC-32 over eight bytes at a time (Intel's slicing-by-8).
using crc_tables = std::array<std::array<std::uint32_t, 256>, 8>;

const crc_tables& crc32_tables() {
  static const crc_tables tables = [] {
    crc_tables t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit)
        c = c & 1U ? 0xedb88320U ^ (c >> 1) : c >> 1;
      t[0][i] = c;
    }
    for (std::size_t k = 1; k < 8; ++k)
      for (std::size_t i = 0; i < 256; ++i)
        t[k][i] = t[0][t[k - 1][i] & 255U] ^ (t[k - 1][i] >> 8);
    return t;
  }();
  return tables;
}

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) {
  const crc_tables& t = crc32_tables();
  crc = ~crc;
  const std::byte* p = bytes.data();
  std::size_t n = bytes.size();
  for (; n >= 8; n -= 8, p += 8) {
    std::uint32_t low = 0, high = 0;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + 4, 4);
    low ^= crc;
    crc = t[7][low & 255U] ^ t[6][(low >> 8) & 255U] ^ t[5][(low >> 16) & 255U] ^ t[4][low >> 24] ^
          t[3][high & 255U] ^ t[2][(high >> 8) & 255U] ^ t[1][(high >> 16) & 255U] ^
          t[0][high >> 24];
  }
  for (; n > 0; --n, ++p)
    crc = t[0][(crc ^ static_cast<std::uint32_t>(*p)) & 255U] ^ (crc >> 8);
  return ~crc;
}

/// A buffer to which little-endian fields are appended.
class record {
public:
  record& u16(std::uint64_t x) { return number(x, 2); }
  record& u32(std::uint64_t x) { return number(x, 4); }
  record& u64(std::uint64_t x) { return number(x, 8); }
  record& text(std::string_view s) {
    bytes_ += s;
    return *this;
  }
  record& zeros(std::size_t n) {
    bytes_.append(n, '\0');
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

private:
  record& number(std::uint64_t x, int n) {
    for (int i = 0; i < n; ++i)
      bytes_ += static_cast<char>(x >> (8 * i) & 0xffU);
    return *this;
  }
  std::string bytes_;
};

} // namespace

result<nothing> zip_writer::begin(const std::string& name, std::int64_t bytes) {
  entry e;
  e.name = name;
  e.bytes = static_cast<std::uint64_t>(bytes);
  e.offset = static_cast<std::uint64_t>(out_->position());
  const bool large = e.bytes >= in_zip64;
  const std::size_t zip64 = large ? 20 : 0;
  // A padding field ("FB", as torch.save writes it) aligns the start of the data.
  const std::uint64_t before = e.offset + 30 + name.size() + zip64 + 4;
  const std::size_t padding =
      static_cast<std::size_t>((data_alignment - before % data_alignment) % data_alignment);
  record r;
  r.u32(0x04034b50).u16(version_needed).u16(0).u16(0); // no flags, not compressed
  r.u16(0).u16(0x21).u32(0);                           // date 1980-01-01; the checksum is patched
                                                       // in later
  r.u32(large ? in_zip64 : e.bytes).u32(large ? in_zip64 : e.bytes);
  r.u16(name.size()).u16(zip64 + 4 + padding).text(name);
  if (large) r.u16(1).u16(16).u64(e.bytes).u64(e.bytes);
  r.text("FB").u16(padding).zeros(padding);
  entries_.push_back(std::move(e));
  return out_->write(r.bytes());
}

result<nothing> zip_writer::write(std::span<const std::byte> bytes) {
  entries_.back().checksum = crc32(entries_.back().checksum, bytes);
  return out_->write(bytes);
}

result<nothing> zip_writer::end() {
  const entry& e = entries_.back();
  return out_->patch(static_cast<std::int64_t>(e.offset) + checksum_at,
                     record().u32(e.checksum).bytes());
}

result<nothing> zip_writer::whole(const std::string& name, std::string_view bytes) {
  if (auto done = begin(name, static_cast<std::int64_t>(bytes.size())); !done.ok()) return done;
  if (auto done = write(std::as_bytes(std::span(bytes.data(), bytes.size()))); !done.ok())
    return done;
  return end();
}

result<nothing> zip_writer::finish() {
  const auto start = static_cast<std::uint64_t>(out_->position());
  record r;
  for (const entry& e : entries_) {
    const bool large = e.bytes >= in_zip64, far = e.offset >= in_zip64;
    const std::size_t zip64 = (large ? 16U : 0U) + (far ? 8U : 0U);
    r.u32(0x02014b50).u16(version_needed).u16(version_needed).u16(0).u16(0).u16(0).u16(0x21);
    r.u32(e.checksum).u32(large ? in_zip64 : e.bytes).u32(large ? in_zip64 : e.bytes);
    r.u16(e.name.size()).u16(zip64 > 0 ? zip64 + 4 : 0).u16(0).u16(0).u16(0).u32(0);
    r.u32(far ? in_zip64 : e.offset).text(e.name);
    if (zip64 == 0) continue;
    r.u16(1).u16(zip64);
    if (large) r.u64(e.bytes).u64(e.bytes);
    if (far) r.u64(e.offset);
  }
  const std::uint64_t size = r.bytes().size(), n = entries_.size();
  // The ZIP64 end record is always written, because it is valid for any size.
  r.u32(0x06064b50).u64(44).u16(version_needed).u16(version_needed).u32(0).u32(0);
  r.u64(n).u64(n).u64(size).u64(start);
  r.u32(0x07064b50).u32(0).u64(start + size).u32(1);
  const std::uint64_t count = n < 0xffff ? n : 0xffff;
  r.u32(0x06054b50).u16(0).u16(0).u16(count).u16(count);
  r.u32(size < in_zip64 ? size : in_zip64).u32(start < in_zip64 ? start : in_zip64).u16(0);
  return out_->write(r.bytes());
}

} // namespace twill::synth
