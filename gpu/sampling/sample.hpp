// Sampling on the device, in this order: mask, biases, bans, penalties, temperature, min_p, top_k,
// top_p, draw.
//
// Each row is independent and reproducible: the random number is a function of (seed, counter)
// alone (a counter-based generator) and never depends on the other rows of the batch.
// config/sampling.hpp defines the order and the meaning of the operations.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"

namespace twill::gpu {

/// How often a token has occurred in a sequence, for the penalties. A sample_row has one entry per
/// distinct token id.
struct token_count {
  std::int32_t id;
  std::int32_t in_output; ///< occurrences in the output
  std::int32_t in_prompt; ///< occurrences in the prompt
};

struct token_bias {
  std::int32_t id;
  float bias; ///< added to the logit; -infinity bans the token
};

/// The sampling parameters of one row of logits. Arrays are device memory.
struct sample_row {
  float temperature = 1; ///< 0: greedy
  std::int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;           ///< position of the drawn token in its sequence
  const token_count* counts = nullptr; // (n_counts)
  std::int32_t n_counts = 0;
  const token_bias* biases = nullptr; // (n_biases)
  std::int32_t n_biases = 0;
  /// Bit i % 32 of word i / 32 says that token i may be drawn; null: every token may. A token that
  /// the mask excludes is never chosen as long as the mask allows at least one token, even if
  /// biases ban every allowed token.
  const std::uint32_t* mask = nullptr; // ((vocab + 31) / 32)
  std::int32_t n_top = -1; ///< alternatives to report, 0..max_top; -1: no log-probabilities at all
};

struct sample_args {
  tensor_ref logits;                // (n, vocab) f32; overwritten. vocab is at most 2^28
  const sample_row* rows = nullptr; // (n) device
  bool any_logprobs = false;        ///< some row has n_top >= 0
  std::int32_t max_top = 0;         ///< columns of top_ids and top_logprobs
  /// Whether any row is sampled at random, and whether any such row uses top_k or top_p;
  /// add_needs() sets these flags. A flag that is false saves launches on a GPU, where the
  /// launching code cannot read `rows`. The host's implementation ignores the flags and reads
  /// `rows`.
  bool any_draw = true, any_top_k = true, any_top_p = true;
  std::int32_t* tokens = nullptr;  // (n) chosen ids
  float* logprobs = nullptr;       // (n) log-probability of the chosen id, raw logits
  std::int32_t* top_ids = nullptr; // (n, max_top) most likely first
  float* top_logprobs = nullptr;   // (n, max_top)
};

/// Sets the flags any_draw, any_top_k and any_top_p of `args` that this row needs, and clears none.
/// The function is pure.
void add_needs(const sample_row& row, sample_args& args);

void sample(device& dev, const sample_args& args);

/// Greedy choice, the lowest id on a tie. NaN never wins.
void argmax(device& dev, tensor_ref logits, // (n, vocab) f32
            std::int32_t* tokens);          // (n) device

/// Log-probability of ids[i] in row i (prompt scoring).
void token_logprobs(device& dev, tensor_ref logits, // (n, vocab) f32
                    const std::int32_t* ids,        // (n) device
                    float* logprobs);               // (n) device

/// The largest number of bytes of device::scratch() that the functions of this file take for up to
/// `rows` rows. `max_top` is sample_args::max_top and matters only with log-probabilities.
std::int64_t sampling_scratch_bytes(const device& dev, std::int64_t rows, std::int64_t vocab,
                                    bool any_logprobs, std::int32_t max_top);

} // namespace twill::gpu
