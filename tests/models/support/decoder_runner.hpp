// Drives a decoder in tests: it gives sequences KV blocks from a shuffled free list, assembles
// steps and copies logits back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/device.hpp"
#include "models/decoder/decoder.hpp"
#include "tests/gpu/tested_device.hpp"

namespace twill::test {

using id_list = std::vector<std::int32_t>;
using logit_row = std::vector<float>;

/// One sequence's share of a step.
struct chunk {
  int sequence = 0;
  id_list ids;
  bool all_rows = false; ///< wants logits of every row instead of the last one
  int prompt = 0;        ///< tokens of the whole prompt; 0 if an earlier chunk gave them or if this
                         ///< chunk is the prompt
};

inline gpu::device& shared_device() {
  static const std::unique_ptr<gpu::device> dev = open_tested();
  return *dev;
}

inline std::int32_t argmax(const logit_row& row) {
  return static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

class decoder_runner {
public:
  decoder_runner(const models::model_spec& spec, const models::checkpoint& weights,
                 const models::decoder_options& options, gpu::device& dev = shared_device())
      : options_(options), dev_(dev) {
    auto loaded = models::decoder::load(dev, spec, weights, options, {});
    if (!loaded.ok()) throw std::runtime_error(loaded.detail());
    decoder_ = std::move(loaded).value();
    for (std::int32_t b = 0; b < options.n_blocks; ++b)
      free_.push_back(b);
    std::shuffle(free_.begin(), free_.end(), std::mt19937(3));
  }

  models::decoder& decoder() { return *decoder_; }

  /// Runs one step. Returns the rows of logits in the order of the chunks.
  std::vector<logit_row> step(const std::vector<chunk>& chunks) {
    auto logits = decoder_->forward(describe(chunks));
    if (!logits.ok()) throw std::runtime_error(logits.detail());
    return download(logits.value());
  }

  /// Runs one step. Returns the logits of the rows for which the chunks want them. For the last
  /// `n_hidden` of these rows it returns hidden states instead, which come after the logits.
  std::vector<logit_row> step_with_hidden(const std::vector<chunk>& chunks, std::int32_t n_hidden) {
    models::step_batch input = describe(chunks);
    input.n_hidden = n_hidden;
    auto logits = decoder_->forward(input);
    if (!logits.ok()) throw std::runtime_error(logits.detail());
    auto rows = download(logits.value());
    for (auto& row : download(decoder_->hidden()))
      rows.push_back(std::move(row));
    return rows;
  }

  /// Runs all of `ids` in steps of at most `chunk_tokens`. Returns the last row's logits.
  logit_row prefill(int sequence, const id_list& ids, std::size_t chunk_tokens) {
    logit_row last;
    for (std::size_t at = 0; at < ids.size(); at += chunk_tokens) {
      const std::size_t end = std::min(ids.size(), at + chunk_tokens);
      const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(at);
      last = step({{sequence, id_list(begin, ids.begin() + static_cast<std::ptrdiff_t>(end)), false,
                    static_cast<int>(ids.size())}})
                 .back();
    }
    return last;
  }

  /// Makes `to` a new sequence that begins with the first `n_blocks` full blocks of `from`.
  void share_prefix(int from, int to, std::size_t n_blocks, int prompt) {
    const sequence_state& lender = sequences_.at(from);
    sequence_state s;
    s.blocks.assign(lender.blocks.begin(),
                    lender.blocks.begin() + static_cast<std::ptrdiff_t>(n_blocks));
    s.length = static_cast<std::int32_t>(n_blocks) * options_.block_tokens;
    s.prompt = prompt;
    s.borrowed = n_blocks;
    sequences_[to] = s;
  }

  void release(int sequence) {
    const sequence_state& s = sequences_[sequence];
    free_.insert(free_.end(), s.blocks.begin() + static_cast<std::ptrdiff_t>(s.borrowed),
                 s.blocks.end());
    sequences_.erase(sequence);
  }

private:
  struct sequence_state {
    id_list blocks;
    std::int32_t length = 0;
    std::int32_t prompt = 0;
    std::size_t borrowed = 0; ///< leading blocks that belong to another sequence
  };

  models::step_batch describe(const std::vector<chunk>& chunks) {
    std::size_t max_blocks = 0;
    for (const chunk& c : chunks)
      max_blocks = std::max(max_blocks, grow(c));
    models::step_batch input;
    input.first_token = {0};
    for (const chunk& c : chunks) {
      sequence_state& s = sequences_[c.sequence];
      if (c.prompt > 0 || s.prompt == 0)
        s.prompt = c.prompt > 0 ? c.prompt : static_cast<std::int32_t>(c.ids.size());
      for (std::size_t i = 0; i < c.ids.size(); ++i) {
        if (c.all_rows || i + 1 == c.ids.size())
          input.logit_rows.push_back(static_cast<std::int32_t>(input.tokens.size()));
        input.tokens.push_back(c.ids[i]);
        input.positions.push_back(s.length++);
      }
      input.first_token.push_back(static_cast<std::int32_t>(input.tokens.size()));
      input.kv_lengths.push_back(s.length);
      input.prompt_lengths.push_back(s.prompt);
      input.block_table.insert(input.block_table.end(), s.blocks.begin(), s.blocks.end());
      input.block_table.resize(input.kv_lengths.size() * max_blocks, -1); // padding is never read
    }
    input.max_blocks = static_cast<std::int32_t>(max_blocks);
    return input;
  }

  std::size_t grow(const chunk& c) {
    sequence_state& s = sequences_[c.sequence];
    const auto needed = static_cast<std::size_t>(s.length) + c.ids.size();
    while (s.blocks.size() * static_cast<std::size_t>(options_.block_tokens) < needed) {
      if (free_.empty()) throw std::runtime_error("the test has too few KV blocks");
      s.blocks.push_back(free_.back());
      free_.pop_back();
    }
    return s.blocks.size();
  }

  std::vector<logit_row> download(gpu::tensor_ref logits) {
    dev_.fence();
    std::vector<logit_row> rows;
    for (std::int64_t r = 0; r < logits.rows(); ++r) {
      logit_row row(static_cast<std::size_t>(logits.row_size()));
      dev_.download(row.data(), logits.as<float>() + r * logits.row_stride,
                    row.size() * sizeof(float));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  models::decoder_options options_;
  gpu::device& dev_;
  std::unique_ptr<models::decoder> decoder_;
  id_list free_;
  std::map<int, sequence_state> sequences_;
};

} // namespace twill::test
