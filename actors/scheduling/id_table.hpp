// id_table: a hash table from 64-bit ids to values, for tables with thousands of look-ups per step.
//
// One thread at a time. Open addressing: a look-up touches one slot of the table and the value.
// Values keep their addresses until they are erased.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "config/base/assert.hpp"

namespace twill::actors {

template <class T>
class id_table {
public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// The value of the id, or null.
  T* find(std::uint64_t id) { return slots_[place_of(id)].value.get(); }
  const T* find(std::uint64_t id) const { return slots_[place_of(id)].value.get(); }
  T& at(std::uint64_t id) { return known(find(id)); }
  const T& at(std::uint64_t id) const { return known(find(id)); }
  /// The value of the id, which is created if there is none.
  T& operator[](std::uint64_t id) {
    std::size_t i = place_of(id);
    if (slots_[i].value) return *slots_[i].value;
    if (2 * (size_ + 1) > slots_.size()) {
      grow();
      i = place_of(id);
    }
    slots_[i] = {id, std::make_unique<T>()};
    ++size_;
    return *slots_[i].value;
  }
  /// Unknown ids are ignored.
  void erase(std::uint64_t id) {
    std::size_t hole = place_of(id);
    const std::unique_ptr<T> erased = std::move(slots_[hole].value);
    if (!erased) return;
    --size_;
    for (std::size_t i = next(hole); slots_[i].value; i = next(i)) {
      // Linear probing without tombstones: an entry moves into the hole if its home slot is not
      // behind the hole.
      if (distance(home(slots_[i].id), i) < distance(hole, i)) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
  }
  void clear() {
    slots_ = std::vector<slot>(n_first);
    shift_ = first_shift;
    size_ = 0;
  }
  /// Prefetches into the CPU cache the slot that a look-up of the id touches first.
  /// prefetch_value(), called some look-ups later, prefetches the value.
  void prefetch(std::uint64_t id) const { __builtin_prefetch(&slots_[home(id)]); }
  void prefetch_value(std::uint64_t id) const {
    if (const T* value = find(id)) __builtin_prefetch(value);
  }
  /// Calls f(id, value) for all entries, in no particular order. `f` must neither add nor erase
  /// entries.
  template <class F>
  void for_each(F&& f) {
    for (slot& s : slots_)
      if (s.value) f(s.id, *s.value);
  }
  template <class F>
  void for_each(F&& f) const {
    for (const slot& s : slots_)
      if (s.value) f(s.id, std::as_const(*s.value));
  }

private:
  struct slot {
    std::uint64_t id = 0;
    std::unique_ptr<T> value; ///< null: the slot is free
  };
  static constexpr std::size_t n_first = 16;
  static constexpr int first_shift = 60;

  static auto& known(auto* value) {
    TWILL_ASSERT(value != nullptr, "the table has the id");
    return *value;
  }
  /// Ids that follow each other are spread over the table.
  std::size_t home(std::uint64_t id) const {
    return static_cast<std::size_t>(id * 0x9e3779b97f4a7c15ULL >> shift_);
  }
  std::size_t next(std::size_t i) const { return (i + 1) & (slots_.size() - 1); }
  std::size_t distance(std::size_t from, std::size_t to) const {
    return (to - from) & (slots_.size() - 1);
  }
  /// Where the id is, or the free place where it would be put.
  std::size_t place_of(std::uint64_t id) const {
    std::size_t i = home(id);
    while (slots_[i].value && slots_[i].id != id)
      i = next(i);
    return i;
  }
  void grow() {
    std::vector<slot> before(2 * slots_.size());
    before.swap(slots_);
    --shift_;
    for (slot& s : before)
      if (s.value) slots_[place_of(s.id)] = std::move(s);
  }

  std::vector<slot> slots_ = std::vector<slot>(n_first); ///< a power of two, at most half full
  int shift_ = first_shift;
  std::size_t size_ = 0;
};

} // namespace twill::actors
