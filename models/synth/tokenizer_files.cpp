#include "models/synth/tokenizer_files.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

#include "config/base/json_text.hpp"
#include "models/synth/configs.hpp"
#include "models/text/tokenizer/byte_level.hpp"

namespace twill::models::synth {
namespace {

constexpr std::string_view chatml_template =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}";

std::string base64(std::string_view bytes) {
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return k < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[k]))
                              : 0U;
    };
    const std::uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (unsigned k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? alphabet[(group >> (18 - 6 * k)) & 63U] : '=';
  }
  return out;
}

std::string tiktoken_ranks(const vocabulary& v) {
  std::string out;
  for (std::int32_t i = 0; i < v.n_base; ++i)
    out += base64(v.pieces[static_cast<std::size_t>(i)].text) + " " + std::to_string(i) + "\n";
  return out;
}

std::string vocab_json(const vocabulary& v) {
  value_object ids;
  for (std::size_t i = 0; i < v.pieces.size(); ++i) {
    const piece& p = v.pieces[i];
    ids.emplace_back(p.type == piece_type::control ? p.text : byte_level_spelling(p.text),
                     static_cast<std::int64_t>(i));
  }
  return to_json(ids);
}

std::string merges_txt(const vocabulary& v) {
  std::string out = "#version: 0.2\n";
  for (const auto& [left, right] : v.merges)
    out += byte_level_spelling(left) + " " + byte_level_spelling(right) + "\n";
  return out;
}

value added_token(std::string_view text, bool normalized) {
  return value_object{{"__type", "AddedToken"},   {"content", text}, {"lstrip", false},
                      {"normalized", normalized}, {"rstrip", false}, {"single_word", false}};
}

value special_map(const recipe& r) {
  switch (r.text) {
  case text_kind::gpt2_files:
    return value_object{{"bos_token", added_token("</s>", true)},
                        {"eos_token", added_token("</s>", true)},
                        {"unk_token", added_token("</s>", true)},
                        {"pad_token", "<pad>"}};
  case text_kind::baichuan:
    return value_object{{"bos_token", "<s>"},
                        {"eos_token", "</s>"},
                        {"unk_token", "<unk>"},
                        {"pad_token", "<unk>"}};
  case text_kind::sentence_piece:
    return value_object{{"bos_token", "<s>"},
                        {"eos_token", r.chatml ? "<|im_end|>" : "</s>"},
                        {"unk_token", "<unk>"}};
  default:
    return nullptr;
  }
}

value llama_tokenizer_config(const recipe& r) {
  const vocabulary ids = special_ids(r);
  value_object decoder;
  const auto add = [&](std::int32_t id, const char* text) {
    decoder.emplace_back(std::to_string(id), value_object{{"content", text},
                                                          {"lstrip", false},
                                                          {"normalized", false},
                                                          {"rstrip", false},
                                                          {"single_word", false},
                                                          {"special", true}});
  };
  add(0, "<unk>");
  add(1, "<s>");
  add(2, "</s>");
  if (r.chatml) {
    add(ids.n_base, "<|im_end|>");
    add(ids.n_base + 1, "<|im_start|>");
  }
  value_object c = {{"add_bos_token", true},
                    {"add_eos_token", false},
                    {"added_tokens_decoder", std::move(decoder)},
                    {"bos_token", "<s>"},
                    {"clean_up_tokenization_spaces", false},
                    {"eos_token", r.chatml ? "<|im_end|>" : "</s>"},
                    {"legacy", true},
                    {"model_max_length", 1e30},
                    {"pad_token", nullptr},
                    {"sp_model_kwargs", value_object{}},
                    {"spaces_between_special_tokens", false},
                    {"tokenizer_class", "LlamaTokenizer"},
                    {"unk_token", "<unk>"},
                    {"use_default_system_prompt", false}};
  if (r.chatml) c.emplace_back("chat_template", chatml_template);
  return c;
}

value own_tokenizer_config(const char* tokenizer_class, const char* module,
                           std::int32_t max_length) {
  return value_object{
      {"model_max_length", max_length},
      {"tokenizer_class", tokenizer_class},
      {"auto_map",
       value_object{
           {"AutoTokenizer", value_list{std::string(module) + "." + tokenizer_class, nullptr}}}}};
}

} // namespace

std::string byte_level_spelling(const std::string& bytes) {
  std::string out;
  for (const char c : bytes)
    out += byte_level_char(static_cast<std::uint8_t>(c));
  return out;
}

value make_tokenizer_config(const recipe& r) {
  switch (r.text) {
  case text_kind::gpt2_files:
    return value_object{{"errors", "replace"},
                        {"unk_token", added_token("</s>", true)},
                        {"bos_token", added_token("</s>", true)},
                        {"eos_token", added_token("</s>", true)},
                        {"pad_token", added_token("<pad>", true)},
                        {"add_prefix_space", false},
                        {"add_bos_token", true},
                        {"special_tokens_map_file", nullptr},
                        {"tokenizer_class", "GPT2Tokenizer"}};
  case text_kind::sentence_piece:
    return llama_tokenizer_config(r);
  case text_kind::chatglm:
    return value_object{
        {"name_or_path", "THUDM/" + r.preset},
        {"remove_space", false},
        {"do_lower_case", false},
        {"tokenizer_class", "ChatGLMTokenizer"},
        {"auto_map", value_object{{"AutoTokenizer",
                                   value_list{"tokenization_chatglm.ChatGLMTokenizer", nullptr}}}}};
  case text_kind::baichuan: {
    value_object c = {{"add_bos_token", false}, {"add_eos_token", false}};
    for (const auto& [name, text] : {std::pair<const char*, const char*>{"bos_token", "<s>"},
                                     {"eos_token", "</s>"},
                                     {"pad_token", "<unk>"},
                                     {"unk_token", "<unk>"}})
      c.emplace_back(name, added_token(text, true));
    const value own =
        own_tokenizer_config("BaichuanTokenizer", "tokenization_baichuan", r.context_length);
    for (const auto& member : *own.as_object())
      c.push_back(member);
    return c;
  }
  case text_kind::tiktoken:
    return own_tokenizer_config("QWenTokenizer", "tokenization_qwen", 4 * r.context_length);
  case text_kind::llama3_json:
    return value_object{{"tokenizer_class", "PreTrainedTokenizerFast"},
                        {"bos_token", "<|begin_of_text|>"},
                        {"eos_token", "<|end_of_text|>"},
                        {"clean_up_tokenization_spaces", false}};
  case text_kind::qwen_json:
    return value_object{{"add_bos_token", false},
                        {"add_prefix_space", false},
                        {"bos_token", nullptr},
                        {"chat_template", chatml_template},
                        {"clean_up_tokenization_spaces", false},
                        {"eos_token", "<|im_end|>"},
                        {"pad_token", "<|endoftext|>"},
                        {"tokenizer_class", "Qwen2Tokenizer"},
                        {"unk_token", nullptr}};
  case text_kind::smollm_json:
    return value_object{
        {"add_prefix_space", false},          {"bos_token", "<|im_start|>"},
        {"chat_template", chatml_template},   {"clean_up_tokenization_spaces", false},
        {"eos_token", "<|im_end|>"},          {"pad_token", "<|im_end|>"},
        {"tokenizer_class", "GPT2Tokenizer"}, {"unk_token", "<|endoftext|>"}};
  }
  return nullptr;
}

std::vector<text_file> tokenizer_files(const recipe& r) {
  const vocabulary v = make_vocabulary(r);
  std::vector<text_file> files;
  files.push_back({"tokenizer_config.json", to_json(make_tokenizer_config(r), 2)});
  switch (r.text) {
  case text_kind::gpt2_files:
    files.push_back({"vocab.json", vocab_json(v)});
    files.push_back({"merges.txt", merges_txt(v)});
    break;
  case text_kind::tiktoken:
    files.push_back({"qwen.tiktoken", tiktoken_ranks(v)});
    break;
  case text_kind::sentence_piece:
  case text_kind::chatglm:
  case text_kind::baichuan:
    files.push_back({"tokenizer.model", sentence_piece_model(r, v)});
    break;
  default:
    files.push_back({"tokenizer.json", tokenizer_json(r, v)});
    break;
  }
  if (r.chatml)
    files.push_back(
        {"added_tokens.json",
         to_json(value_object{{"<|im_end|>", v.n_base}, {"<|im_start|>", v.n_base + 1}}, 2)});
  const value map = special_map(r);
  if (!map.is_null()) files.push_back({"special_tokens_map.json", to_json(map, 2)});
  return files;
}

} // namespace twill::models::synth
