#include "tools/twill-synth/gguf_metadata.hpp"

#include <bit>

#include "models/families/family.hpp"
#include "models/synth/configs.hpp"
#include "models/synth/family_recipe.hpp"
#include "models/synth/tokenizer_files.hpp"
#include "models/synth/vocabulary.hpp"

namespace twill::synth {
namespace {

void add_sizes(gguf_pairs& w, const recipe& r, const std::string& architecture) {
  const gguf_layout& layout = *r.family->recipe->gguf;
  const auto key = [&](const char* name) { return architecture + "." + name; };
  w.integer(key("block_count"), r.n_layers);
  w.integer(key("context_length"), r.context_length);
  w.integer(key("embedding_length"), r.hidden_size);
  w.integer(key("feed_forward_length"), std::int64_t{layout.mlp_factor} * r.mlp_size);
  w.integer(key("attention.head_count"), r.n_heads);
  w.integer(key("attention.head_count_kv"), r.n_kv_heads);
  w.number(key("attention.layer_norm_rms_epsilon"), r.norm_epsilon);
  w.integer(key("attention.key_length"), r.head_size());
  w.integer(key("attention.value_length"), r.head_size());
  w.integer(key("rope.dimension_count"), r.head_size() / layout.rotary_share);
  w.number(key("rope.freq_base"), r.rope_theta * r.rope_ratio);
  w.integer(key("vocab_size"), r.vocab_size);
  if (r.window > 0) w.integer(key("attention.sliding_window"), r.window);
}

const char* pre_tokenizer_name(text_kind kind) {
  switch (kind) {
  case text_kind::llama3_json:
    return "llama-bpe";
  case text_kind::qwen_json:
  case text_kind::tiktoken:
    return "qwen2";
  case text_kind::smollm_json:
    return "smollm";
  case text_kind::chatglm:
    return "chatglm-spm";
  default:
    return "default";
  }
}

void add_tokens(gguf_pairs& w, const recipe& r, const vocabulary& v) {
  const auto n = static_cast<std::size_t>(r.vocab_size);
  const bool spelled = is_byte_level(r.text);
  w.list("tokenizer.ggml.tokens", gguf_type::string, n);
  for (std::size_t i = 0; i < n; ++i) {
    if (i >= v.pieces.size()) // a row of the embedding matrix that has no token
      w.out().text("[PAD" + std::to_string(i) + "]");
    else if (spelled && v.pieces[i].type == piece_type::normal)
      w.out().text(byte_level_spelling(v.pieces[i].text));
    else
      w.out().text(v.pieces[i].text);
  }
  w.list("tokenizer.ggml.token_type", gguf_type::i32, n);
  for (std::size_t i = 0; i < n; ++i)
    w.out().u32(
        static_cast<std::uint32_t>(i < v.pieces.size() ? v.pieces[i].type : piece_type::unused));
}

void add_merges_or_scores(gguf_pairs& w, const recipe& r, const vocabulary& v) {
  w.text("tokenizer.ggml.pre", pre_tokenizer_name(r.text));
  if (is_byte_level(r.text)) {
    w.list("tokenizer.ggml.merges", gguf_type::string, v.merges.size());
    for (const auto& [left, right] : v.merges)
      w.out().text(byte_level_spelling(left) + " " + byte_level_spelling(right));
    return;
  }
  w.list("tokenizer.ggml.scores", gguf_type::f32, static_cast<std::size_t>(r.vocab_size));
  float score = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(r.vocab_size); ++i) {
    const bool normal = i < v.pieces.size() && v.pieces[i].type == piece_type::normal;
    w.out().u32(std::bit_cast<std::uint32_t>(normal ? score : 0.0f));
    if (normal) score -= 1;
  }
}

void add_text_side(gguf_pairs& w, const recipe& r) {
  const vocabulary v = make_vocabulary(r);
  const bool byte_level = is_byte_level(r.text);
  w.text("tokenizer.ggml.model", byte_level ? "gpt2" : "llama");
  add_tokens(w, r, v);
  add_merges_or_scores(w, r, v);
  // For a vocabulary without BOS, llama.cpp's converters write EOS as BOS, except for ChatGLM.
  if (const std::int32_t bos = v.bos < 0 && byte_level ? v.eos : v.bos; bos >= 0)
    w.integer("tokenizer.ggml.bos_token_id", bos);
  w.integer("tokenizer.ggml.eos_token_id", v.eos);
  if (v.pad >= 0) w.integer("tokenizer.ggml.padding_token_id", v.pad);
  if (!byte_level) w.integer("tokenizer.ggml.unknown_token_id", 0);
  w.flag("tokenizer.ggml.add_bos_token",
         r.text == text_kind::sentence_piece || r.text == text_kind::llama3_json);
  if (r.text == text_kind::baichuan) w.flag("tokenizer.ggml.add_space_prefix", false);
  w.flag("tokenizer.ggml.add_eos_token", false);
  const value config = make_tokenizer_config(r);
  if (const value* chat = config.find("chat_template"))
    w.text("tokenizer.chat_template", *chat->as_string());
}

} // namespace

gguf_pairs make_gguf_metadata(const recipe& r, const std::string& architecture) {
  gguf_pairs w;
  w.text("general.architecture", architecture);
  w.text("general.name", r.preset);
  w.integer("general.quantization_version", 2);
  add_sizes(w, r, architecture);
  add_text_side(w, r);
  return w;
}

} // namespace twill::synth
