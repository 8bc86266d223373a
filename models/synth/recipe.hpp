// recipe: describes a random checkpoint, whatever its file format.
//
// A plain value. A recipe, which includes the seed, determines every byte of the checkpoint: files
// written from it and weights generated from it in memory are equal. The sizes of a preset are
// those of the published model's config.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/errc.hpp"

namespace twill::models::families {
struct family;
}

namespace twill::models::synth {

enum class storage_type : std::uint8_t { f32, f16, bf16 };
enum class packing : std::uint8_t { none, gptq, awq };

/// The kind of tokenizer whose files the folder has.
enum class text_kind : std::uint8_t {
  gpt2_files,     ///< vocab.json and merges.txt (OPT)
  sentence_piece, ///< tokenizer.model (Llama, Mistral)
  chatglm,        ///< tokenizer.model without its control tokens
  baichuan,       ///< tokenizer.model with reserved pieces
  tiktoken,       ///< qwen.tiktoken
  llama3_json,    ///< tokenizer.json, byte-level
  qwen_json,      ///< tokenizer.json, byte-level, NFC
  smollm_json,    ///< tokenizer.json, byte-level, digits apart
};

struct recipe {
  std::string preset;                       ///< name of the preset from which the recipe was made
  const families::family* family = nullptr; ///< never null in a preset
  text_kind text = text_kind::sentence_piece;
  std::int32_t vocab_size = 0; ///< rows of the embedding
  std::int32_t hidden_size = 0;
  std::int32_t n_layers = 0;
  std::int32_t n_heads = 0;
  std::int32_t n_kv_heads = 0;
  std::int32_t head_dim = 0; ///< 0 means hidden_size / n_heads
  std::int32_t mlp_size = 0; ///< width of the MLP's inner layer
  std::int32_t context_length = 0;
  std::int32_t window = 0; ///< Mistral's sliding window; 0 for none
  double norm_epsilon = 1e-5;
  double rope_theta = 10000;
  double rope_ratio = 1;       ///< ChatGLM: theta is 10000 times this
  std::int32_t embed_dim = 0;  ///< OPT's word_embed_proj_dim; 0 means hidden_size
  bool pre_norm = true;        ///< OPT: norms before the sub-layers
  bool alibi = false;          ///< Baichuan: ALiBi instead of rotary
  bool tied_head = false;      ///< the head is the embedding
  bool attention_bias = false; ///< Llama: biases on q, k, v and o
  bool chatml = false;         ///< <|im_end|> and <|im_start|> follow a SentencePiece vocabulary
  storage_type dtype = storage_type::f16;
  packing packed = packing::none;
  std::int32_t bits = 4;
  std::int32_t group = 128; ///< input columns per scale; -1 for all of them
  bool act_order = false;   ///< GPTQ: the columns of a group are spread over the matrix
  bool symmetric = true;    ///< GPTQ: zero points are the middle code
  std::uint64_t seed = 1;
  std::int32_t step_us = 0;       ///< preset null: microseconds for which a step sleeps instead of
                                  ///< computing
  std::int32_t fault_every_s = 0; ///< preset null: a step fails each time so many seconds have
                                  ///< passed; 0: none

  std::int32_t head_size() const;
  std::int32_t embedding_size() const { return embed_dim > 0 ? embed_dim : hidden_size; }
};

/// All presets, in the order in which `--list` shows them.
const std::vector<recipe>& presets();

/// Sets one option by name ("layers", "hidden", "dtype", ...); see options().
result<nothing> set_option(recipe& r, std::string_view name, std::string_view value);

struct option_help {
  const char* name;
  const char* text;
};
const std::vector<option_help>& options();

/// Parses a text such as "opt-125m" or "opt-125m?layers=2&seed=3": the name of a preset, with
/// options. The sizes of the result have been checked.
result<recipe> parse_recipe(std::string_view text);

/// Fails with bad_metadata if sizes do not fit together or if an option does not apply to the
/// family.
result<nothing> validate(const recipe& r);

const char* name_of(storage_type t);
/// Describes the weights in words: "f16", "GPTQ-4 group 128", ...
std::string describe_weights(const recipe& r);

} // namespace twill::models::synth
