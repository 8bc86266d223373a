// A ragged batch in device memory with shuffled block tables, for the tests of gpu/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/ragged.hpp"

namespace twill::test {

/// Values in device memory, kept together with their owner.
template <class T>
class device_array {
public:
  device_array(gpu::device& dev, const std::vector<T>& values)
      : dev_(&dev), size_(values.size()),
        memory_(dev.allocate(std::max<std::size_t>(1, values.size() * sizeof(T)), "test").value()) {
    dev.upload(memory_.data(), values.data(), values.size() * sizeof(T));
  }
  T* data() const { return static_cast<T*>(memory_.data()); }
  std::vector<T> get() const {
    std::vector<T> values(size_);
    dev_->fence();
    dev_->download(values.data(), memory_.data(), size_ * sizeof(T));
    return values;
  }

private:
  gpu::device* dev_;
  std::size_t size_;
  gpu::buffer memory_;
};

inline std::vector<float> random_floats(std::size_t n, unsigned seed, float spread = 1.0f) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values(n);
  for (float& v : values)
    v = normal(rng);
  return values;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Rows [past, past + rows) of one sequence.
struct chunk {
  std::int32_t past = 0;
  std::int32_t rows = 0;
};

/// A step over some sequences. Sequence s has blocks drawn without repetition from the arena.
struct ragged_case {
  std::int32_t block_tokens, n_blocks, max_blocks;
  std::vector<std::vector<std::int32_t>> tables;
  std::vector<std::int32_t> positions, sequence_of, first_token, kv_lengths, block_table;
  std::vector<std::unique_ptr<device_array<std::int32_t>>> arrays;
  gpu::ragged_batch batch;

  /// Blocks for sequences of the given final lengths.
  ragged_case(const std::vector<std::int32_t>& lengths, std::int32_t block_tokens_, unsigned seed)
      : block_tokens(block_tokens_), n_blocks(3), max_blocks(1) {
    for (const std::int32_t n : lengths)
      n_blocks += (n + block_tokens - 1) / block_tokens;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(n_blocks));
    for (std::int32_t i = 0; i < n_blocks; ++i)
      ids[static_cast<std::size_t>(i)] = i;
    std::shuffle(ids.begin(), ids.end(), std::mt19937(seed));
    std::size_t next = 0;
    for (const std::int32_t n : lengths) {
      const auto count = static_cast<std::size_t>((n + block_tokens - 1) / block_tokens);
      tables.emplace_back(ids.begin() + static_cast<std::ptrdiff_t>(next),
                          ids.begin() + static_cast<std::ptrdiff_t>(next + count));
      next += count;
      max_blocks = std::max(max_blocks, static_cast<std::int32_t>(count));
    }
  }

  /// Fills the arrays of a step; chunks[i] is the rows of sequences[i].
  void step(gpu::device& dev, const std::vector<std::size_t>& sequences,
            const std::vector<chunk>& chunks) {
    positions.clear();
    sequence_of.clear();
    kv_lengths.clear();
    block_table.clear();
    first_token.assign(1, 0);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      for (std::int32_t i = 0; i < chunks[s].rows; ++i) {
        positions.push_back(chunks[s].past + i);
        sequence_of.push_back(static_cast<std::int32_t>(s));
      }
      first_token.push_back(static_cast<std::int32_t>(positions.size()));
      kv_lengths.push_back(chunks[s].past + chunks[s].rows);
      std::vector<std::int32_t> row = tables[sequences[s]];
      row.resize(static_cast<std::size_t>(max_blocks), -1); // never to be read
      block_table.insert(block_table.end(), row.begin(), row.end());
    }
    arrays.clear();
    const auto put = [&](const std::vector<std::int32_t>& v) {
      arrays.push_back(std::make_unique<device_array<std::int32_t>>(dev, v));
      return arrays.back()->data();
    };
    batch = {static_cast<std::int32_t>(positions.size()),
             static_cast<std::int32_t>(sequences.size()),
             max_blocks,
             put(positions),
             put(sequence_of),
             put(first_token),
             put(kv_lengths),
             put(block_table)};
  }
};

} // namespace twill::test
