// Writes tokenizer.json in the format of Hugging Face's tokenizers library: byte-level BPE, as in
// the tokenizers of Llama 3, Qwen and SmolLM.
#include "config/base/json_text.hpp"
#include "config/base/value.hpp"
#include "models/synth/tokenizer_files.hpp"

namespace twill::models::synth {
namespace {

using object = value_object;

constexpr const char* llama3_words =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* qwen_words =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

value byte_level(bool prefix_space, bool trim, bool regex) {
  return object{{"type", "ByteLevel"},
                {"add_prefix_space", prefix_space},
                {"trim_offsets", trim},
                {"use_regex", regex}};
}

value split_by(const char* expression) {
  return object{{"type", "Split"},
                {"pattern", object{{"Regex", expression}}},
                {"behavior", "Isolated"},
                {"invert", false}};
}

value pre_tokenizer(text_kind kind) {
  value_list steps;
  if (kind == text_kind::smollm_json) {
    steps.push_back(object{{"type", "Digits"}, {"individual_digits", true}});
    steps.push_back(byte_level(false, true, true));
  } else {
    steps.push_back(split_by(kind == text_kind::llama3_json ? llama3_words : qwen_words));
    steps.push_back(byte_level(false, true, false));
  }
  return object{{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

/// Makes the template that puts Llama 3's BOS token before every text.
value bos_template(const vocabulary& v) {
  const std::string& text = v.pieces[static_cast<std::size_t>(v.bos)].text;
  const value bos = object{{"SpecialToken", object{{"id", text}, {"type_id", 0}}}};
  const auto sequence = [](const char* id, int type) {
    return value(object{{"Sequence", object{{"id", id}, {"type_id", type}}}});
  };
  return object{{"type", "TemplateProcessing"},
                {"single", value_list{bos, sequence("A", 0)}},
                {"pair", value_list{bos, sequence("A", 0), sequence("B", 1)}},
                {"special_tokens", object{{text, object{{"id", text},
                                                        {"ids", value_list{v.bos}},
                                                        {"tokens", value_list{value(text)}}}}}}};
}

value post_processor(text_kind kind, const vocabulary& v) {
  const value plain = byte_level(true, false, true);
  if (kind != text_kind::llama3_json) return plain;
  return object{{"type", "Sequence"}, {"processors", value_list{plain, bos_template(v)}}};
}

value added_tokens(const vocabulary& v) {
  value_list added;
  for (std::size_t i = 0; i < v.pieces.size(); ++i)
    if (v.pieces[i].type == piece_type::control)
      added.push_back(object{{"id", static_cast<std::int64_t>(i)},
                             {"content", v.pieces[i].text},
                             {"single_word", false},
                             {"lstrip", false},
                             {"rstrip", false},
                             {"normalized", false},
                             {"special", true}});
  return added;
}

value bpe_model(text_kind kind, const vocabulary& v) {
  object ids;
  for (std::int32_t i = 0; i < v.n_base; ++i) {
    const piece& p = v.pieces[static_cast<std::size_t>(i)];
    ids.emplace_back(p.type == piece_type::control ? p.text : byte_level_spelling(p.text), i);
  }
  value_list merges;
  for (const auto& [left, right] : v.merges)
    merges.emplace_back(byte_level_spelling(left) + " " + byte_level_spelling(right));
  return object{{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", nullptr},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", false},
                {"byte_fallback", false},
                {"ignore_merges", kind == text_kind::llama3_json},
                {"vocab", std::move(ids)},
                {"merges", std::move(merges)}};
}

} // namespace

std::string tokenizer_json(const recipe& r, const vocabulary& v) {
  return to_json(object{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens(v)},
      {"normalizer", r.text == text_kind::qwen_json ? value(object{{"type", "NFC"}}) : value()},
      {"pre_tokenizer", pre_tokenizer(r.text)},
      {"post_processor", post_processor(r.text, v)},
      {"decoder", byte_level(true, true, true)},
      {"model", bpe_model(r.text, v)}});
}

} // namespace twill::models::synth
