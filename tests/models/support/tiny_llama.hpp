// A random Llama model of a few kilobytes as a GGUF file. Same seed, same bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/models/support/gguf_writer.hpp"

namespace twill::test {

struct tiny_llama {
  std::uint32_t hidden = 64, n_layers = 2, n_heads = 4, n_kv_heads = 2, mlp = 96, vocab = 50;
  std::uint32_t q_kind = 3, k_kind = 3,
                v_kind = 3; ///< GGUF kinds: 0 F32, 1 F16, 2 Q4_0, 3 Q4_1 ...
  std::uint32_t gate_kind = 3, up_kind = 3, other_kind = 3;
  std::uint32_t embedding_kind = 8;
  bool tied = true;
  bool biases = false;
  float mlp_norm = 1, final_norm = 1;
  std::uint32_t seed = 1;
};

/// Random bytes of one matrix: small values in every kind.
inline std::string random_matrix(std::mt19937& random, std::uint32_t kind, std::uint64_t values) {
  std::uniform_real_distribution<float> small(-0.25f, 0.25f);
  std::uniform_int_distribution<int> byte(0, 255);
  std::string bytes;
  const auto dense = [&](float f) {
    const auto bits = std::bit_cast<std::uint32_t>(f);
    if (kind == 0)
      bytes += raw(f);
    else if (kind == 30)
      bytes += raw(static_cast<std::uint16_t>(bits >> 16));
    else
      bytes += raw(half(f));
  };
  const auto codes = [&](int n) {
    for (int i = 0; i < n; ++i)
      bytes += static_cast<char>(byte(random));
  };
  if (kind == 0 || kind == 1 || kind == 30) {
    for (std::uint64_t i = 0; i < values; ++i)
      dense(std::max(0.01f, small(random)) - 0.1f);
    return bytes;
  }
  for (std::uint64_t b = 0; b < values / 32; ++b) {
    const float scale = 0.02f + 0.1f * std::abs(small(random));
    bytes += raw(half(kind == 8 ? scale / 16 : scale));
    if (kind == 3) bytes += raw(half(-7.5f * scale));
    codes(kind == 8 ? 32 : 16);
  }
  return bytes;
}

inline void add_tiny_metadata(gguf_writer& w, const tiny_llama& m) {
  w.add_string("general.architecture", "llama");
  w.add_string("general.name", "tiny");
  w.add_u32("llama.block_count", m.n_layers);
  w.add_u32("llama.context_length", 128);
  w.add_u32("llama.embedding_length", m.hidden);
  w.add_u32("llama.feed_forward_length", m.mlp);
  w.add_u32("llama.attention.head_count", m.n_heads);
  w.add_u32("llama.attention.head_count_kv", m.n_kv_heads);
  w.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  w.add_f32("llama.rope.freq_base", 10000.0f);
}

inline std::string tiny_vector(std::uint64_t n, float value) {
  std::string bytes;
  for (std::uint64_t i = 0; i < n; ++i)
    bytes += raw(value + 0.01f * static_cast<float>(i % 7));
  return bytes;
}

inline gguf_writer make_tiny_llama(const tiny_llama& m) {
  gguf_writer w;
  add_tiny_metadata(w, m);
  std::mt19937 random(m.seed);
  const auto matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t cols,
                          std::uint32_t kind) {
    w.add_tensor(name + ".weight", {rows, cols}, kind, random_matrix(random, kind, rows * cols));
  };
  const auto projection = [&](const std::string& name, std::uint64_t rows, std::uint64_t cols,
                              std::uint32_t kind) {
    matrix(name, rows, cols, kind);
    if (m.biases) w.add_tensor(name + ".bias", {rows}, 0, tiny_vector(rows, 0.05f));
  };
  const std::uint64_t kv = m.hidden / m.n_heads * m.n_kv_heads;
  matrix("token_embd", m.vocab, m.hidden, m.embedding_kind);
  for (std::uint32_t l = 0; l < m.n_layers; ++l) {
    const std::string block = "blk." + std::to_string(l) + ".";
    w.add_tensor(block + "attn_norm.weight", {m.hidden}, 0, tiny_vector(m.hidden, 1.0f));
    projection(block + "attn_q", m.hidden, m.hidden, m.q_kind);
    projection(block + "attn_k", kv, m.hidden, m.k_kind);
    projection(block + "attn_v", kv, m.hidden, m.v_kind);
    projection(block + "attn_output", m.hidden, m.hidden, m.other_kind);
    w.add_tensor(block + "ffn_norm.weight", {m.hidden}, 0, tiny_vector(m.hidden, m.mlp_norm));
    projection(block + "ffn_gate", m.mlp, m.hidden, m.gate_kind);
    projection(block + "ffn_up", m.mlp, m.hidden, m.up_kind);
    projection(block + "ffn_down", m.hidden, m.mlp, m.other_kind);
  }
  w.add_tensor("output_norm.weight", {m.hidden}, 0, tiny_vector(m.hidden, m.final_norm));
  if (!m.tied) matrix("output", m.vocab, m.hidden, m.other_kind);
  return w;
}

} // namespace twill::test
