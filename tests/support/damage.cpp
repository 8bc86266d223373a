#include "tests/support/damage.hpp"

#include <algorithm>
#include <exception>
#include <set>

namespace twill::test {
namespace {

constexpr std::size_t most_faults = 5;
/// In a part of at most this size, which is that of a header's entry, each byte is damaged.
constexpr std::size_t every_byte = 96;

/// Checks damaged copies and writes down what was wrong.
class examination {
public:
  explicit examination(const damage_check& check) : check_(check) {}

  bool is_over() const { return n_faults_ >= most_faults; }
  const std::string& faults() const { return faults_; }

  void examine(const damage& done, const std::string& damaged) {
    if (is_over()) return;
    std::string wrong;
    try {
      wrong = check_(done, damaged);
    } catch (const std::exception& thrown) {
      wrong = std::string("exception: ") + thrown.what();
    }
    if (wrong.empty()) return;
    ++n_faults_;
    faults_ += done.text() + ": " + wrong + '\n';
  }

private:
  const damage_check& check_;
  std::string faults_;
  std::size_t n_faults_ = 0;
};

/// Returns what is wrong with the test's parts: gaps, overlaps or a wrong end.
std::string fault_of_parts(std::size_t size, const std::vector<part>& parts) {
  std::size_t end = 0;
  for (const part& p : parts) {
    if (p.begin != end || p.end < p.begin)
      return "the test's parts leave out or repeat bytes before `" + p.name +
             "`, which begins at " + std::to_string(p.begin) + ", not at " + std::to_string(end) +
             '\n';
    end = p.end;
  }
  if (end == size) return {};
  return "the test's parts end at " + std::to_string(end) + ", the bytes at " +
         std::to_string(size) + '\n';
}

std::vector<std::size_t> places_in(const part& p, bool sparse) {
  const std::size_t size = p.end - p.begin;
  if (sparse && size > 3) return {0, size / 2, size - 1};
  return places_to_damage(size);
}

void change_bytes(std::string& bytes, const part& p, std::size_t at, examination& examined) {
  const char was = bytes[at];
  for (const int mask : {0x01, 0x80, 0xff}) {
    bytes[at] = static_cast<char>(was ^ mask);
    examined.examine({mask == 0xff ? damage_kind::byte : damage_kind::bit, p.name, at}, bytes);
  }
  bytes[at] = was;
}

/// From `at` on the part is zeroes, as where a crash came before its pages were written.
void zero_bytes(std::string& bytes, const part& p, std::size_t at, examination& examined) {
  const std::string was = bytes.substr(at, p.end - at);
  const auto first = was.find_first_not_of('\0');
  if (first == std::string::npos) return; // already zeroes
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(at),
            bytes.begin() + static_cast<std::ptrdiff_t>(p.end), '\0');
  examined.examine({damage_kind::zeroes, p.name, at + first}, bytes);
  bytes.replace(at, was.size(), was);
}

} // namespace

std::string damage::text() const {
  const std::string where = " at " + std::to_string(at) + " in `" + part + "`";
  switch (kind) {
  case damage_kind::bit:
    return "another bit" + where;
  case damage_kind::byte:
    return "another byte" + where;
  case damage_kind::zeroes:
    return "zeroes" + where;
  case damage_kind::cut:
    return "a cut" + where;
  case damage_kind::appended:
    return "one more byte" + where;
  }
  return where;
}

std::vector<std::size_t> places_to_damage(std::size_t size) {
  std::set<std::size_t> places;
  for (std::size_t at = 0; at < size && size <= every_byte; ++at)
    places.insert(at);
  if (size <= every_byte) return {places.begin(), places.end()};
  places = {0, size / 2, size - 1};
  const auto add_beside = [&](std::size_t boundary) {
    for (const std::size_t at : {boundary - 1, boundary, boundary + 1})
      if (at < size) places.insert(at);
  };
  constexpr std::size_t mib = std::size_t{1} << 20;
  for (std::size_t power = 64; power < mib && power <= size; power *= 2)
    add_beside(power);
  for (std::size_t boundary = mib; boundary <= size; boundary += mib)
    add_beside(boundary);
  return {places.begin(), places.end()};
}

std::vector<part> parts_in_order(const std::vector<sized>& sizes, std::size_t begin) {
  std::vector<part> parts;
  for (const sized& one : sizes) {
    parts.push_back({one.name, begin, begin + one.size});
    begin += one.size;
  }
  return parts;
}

std::string faults_after_damage(const std::string& bytes, const std::vector<part>& parts,
                                const damage_check& check, const damage_options& options) {
  if (const auto fault = fault_of_parts(bytes.size(), parts); !fault.empty()) return fault;
  examination examined(check);
  std::string changed = bytes;
  for (const part& p : parts)
    for (const std::size_t place : places_in(p, options.sparse)) {
      if (examined.is_over()) return examined.faults();
      change_bytes(changed, p, p.begin + place, examined);
      zero_bytes(changed, p, p.begin + place, examined);
      if (options.cuts)
        examined.examine({damage_kind::cut, p.name, p.begin + place},
                         bytes.substr(0, p.begin + place));
    }
  if (options.cuts && !parts.empty())
    for (const char more : {'\0', '\n', 'x'})
      examined.examine({damage_kind::appended, parts.back().name, bytes.size()}, bytes + more);
  return examined.faults();
}

} // namespace twill::test
