// A harness that damages bytes and checks what a reader makes of them. Damage is done at the ends,
// in the middle and beside every boundary of every part of a format.
//
// A test takes the parts from the format's description, never from the reader. The harness damages
// one place at a time, and asks the test what is wrong with the reader's answer. The requirements
// are: damage is refused with an error that says where and what, or all data that the damage cannot
// affect is read as from undamaged bytes; and a checksum detects each damaged byte that it covers.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace twill::test {

/// Bytes [begin, end) of a format.
struct part {
  std::string name;
  std::size_t begin = 0, end = 0;
};

enum class damage_kind {
  bit,     ///< one bit of one byte is inverted
  byte,    ///< all bits of one byte are inverted
  zeroes,  ///< from this place on, the part has zeroes, as after a crash
  cut,     ///< the bytes end here
  appended ///< one more byte follows
};

/// What was done to the bytes.
struct damage {
  damage_kind kind = damage_kind::bit;
  std::string part;   ///< the damaged part; for a cut, the first part that is not whole
  std::size_t at = 0; ///< the first byte that is changed or missing

  /// Whether only bytes of this part differ, while the bytes before and behind the part are
  /// unchanged.
  bool within_part() const { return kind != damage_kind::cut && kind != damage_kind::appended; }
  std::string text() const;
};

/// The places of a part of `size` bytes where readers tend to go wrong: each byte of a small part.
/// Of a larger part: its ends, its middle, and the places beside each power of two from 64 on and
/// beside each multiple of 1 MiB. Ascending, without duplicates.
std::vector<std::size_t> places_to_damage(std::size_t size);

/// The name and size of a part. parts_in_order() places such parts one after the other.
struct sized {
  std::string name;
  std::size_t size = 0;
};
std::vector<part> parts_in_order(const std::vector<sized>& sizes, std::size_t begin = 0);

struct damage_options {
  bool cuts = true;    ///< also cut the bytes and append to them
  bool sparse = false; ///< the ends and the middle of each part alone, for slow readers
};

/// What is wrong with the reader's answer to these bytes; empty: nothing.
using damage_check = std::function<std::string(const damage&, const std::string& damaged)>;

/// Damages a copy of `bytes` in each place of each part, one at a time. Returns an empty string, or
/// a description of the first few faults that `check` finds. An exception of the check is a fault
/// too. If parts overlap, end after the bytes, or leave bytes that belong to no part, that is a
/// fault of the test and is reported as well.
std::string faults_after_damage(const std::string& bytes, const std::vector<part>& parts,
                                const damage_check& check, const damage_options& options = {});

} // namespace twill::test
