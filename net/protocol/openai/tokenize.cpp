#include "net/protocol/openai/tokenize.hpp"

#include <array>

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/json/utf8.hpp"
#include "net/protocol/output_json.hpp"
#include "net/protocol/tgi/tgi_tokenize.hpp"

namespace twill::net {
namespace {

using ids = std::vector<std::int32_t>;

void add_pieces(json_writer& json, const std::vector<actors::token_piece>& pieces) {
  json.begin_array();
  for (const auto& piece : pieces) {
    json.begin_object().field("id", piece.id).key("piece");
    if (find_invalid_utf8(piece.bytes) == std::string_view::npos) {
      json.add(piece.bytes);
    } else { // not a whole character: write bytes, as llama.cpp does
      json.begin_array();
      for (const char byte : piece.bytes)
        json.add(static_cast<int>(static_cast<unsigned char>(byte)));
      json.end_array();
    }
    json.end_object();
  }
  json.end_array();
}

result<std::string> tokenize_content(fields& from, const codec_context& context) {
  actors::text_prompt text;
  text.add_special = false;
  bool parse_special = true;
  bool with_pieces = false;
  from.read("content", text.text);
  from.read("add_special", text.add_special);
  from.read("parse_special", parse_special);
  from.read("with_pieces", with_pieces);
  if (!from.ok()) return fail(from.error());
  const auto tokens = context.engine.tokenize(context.model.id, text, parse_special);
  if (!tokens.ok()) return fail(from_engine(tokens.code(), tokens.detail()));
  std::string out;
  json_writer json(out);
  json.begin_object().key("tokens");
  if (with_pieces) {
    const auto pieces = context.engine.pieces(context.model.id, tokens.value());
    if (!pieces.ok()) return fail(from_engine(pieces.code(), pieces.detail()));
    add_pieces(json, pieces.value());
  } else {
    add_ids(json, std::span<const std::int32_t>(tokens.value()));
  }
  json.end_object();
  return out;
}

actors::result<ids> tokenize_prompt(fields& from, const codec_context& context) {
  if (from.find("messages") != nullptr) {
    actors::chat_prompt chat;
    read_chat_prompt(from, chat);
    if (!from.ok()) return ids{};
    return context.engine.tokenize_chat(context.model.id, chat);
  }
  actors::text_prompt text;
  bool parse_special = true;
  from.require("prompt");
  from.read("prompt", text.text);
  from.read("add_special_tokens", text.add_special);
  from.read("parse_special", parse_special);
  if (!from.ok()) return ids{};
  return context.engine.tokenize(context.model.id, text, parse_special);
}

constexpr std::array tokenize_table = {
    field_row{"prompt", schema::string, "The text, in vLLM's body."},
    field_row{"add_special_tokens", schema::boolean,
              "The model's first token goes before it (the default)."},
    field_row{"return_token_strs", schema::boolean, "The text of each token comes as well."},
    field_row{"inputs", schema::string, "The text, in TGI's body."},
    field_row{"content", schema::string, "The text, in llama.cpp's body."},
    field_row{"add_special", schema::boolean, "As `add_special_tokens`; the default is false."},
    field_row{"with_pieces", schema::boolean, "As `return_token_strs`."},
    field_row{"parse_special", schema::boolean,
              "The names of special tokens in the text become those tokens (the default)."}};

} // namespace

field_rows tokenize_rows() {
  field_rows rows{model_row};
  add_rows(rows, tokenize_table);
  add_chat_prompt_rows(rows);
  for (auto& row : rows)
    row.required = false; // one of a prompt, `content` and `messages` is enough
  return rows;
}

field_rows detokenize_rows() {
  return {model_row, {"tokens", schema::token_ids, "The ids.", field_use::honoured, true}};
}

result<std::string> tokenize_body(const value& body, const codec_context& context) {
  fields from(body);
  if (from.find("content") != nullptr) return tokenize_content(from, context);
  if (from.find("inputs") != nullptr) return tokenize_inputs(from, context);
  bool token_strings = false;
  from.read("return_token_strs", token_strings);
  const auto tokens = tokenize_prompt(from, context);
  if (!from.ok()) return fail(from.error());
  if (!tokens.ok()) return fail(from_engine(tokens.code(), tokens.detail()));
  std::string out;
  json_writer json(out);
  json.begin_object()
      .field("count", tokens.value().size())
      .field("max_model_len", context.model.max_model_len)
      .key("tokens");
  add_ids(json, std::span<const std::int32_t>(tokens.value()));
  json.key("token_strs");
  if (token_strings) {
    const auto pieces = context.engine.pieces(context.model.id, tokens.value());
    if (!pieces.ok()) return fail(from_engine(pieces.code(), pieces.detail()));
    json.begin_array();
    for (const auto& piece : pieces.value())
      json.add(piece.bytes);
    json.end_array();
  } else {
    json.add(nullptr);
  }
  json.end_object();
  return out;
}

result<std::string> detokenize_body(const value& body, const codec_context& context) {
  fields from(body);
  ids tokens;
  from.require("tokens");
  from.read("tokens", tokens);
  for (std::size_t i = 0; i < tokens.size() && context.model.vocab_size > 0; ++i)
    if (tokens[i] >= context.model.vocab_size)
      from.reject("tokens[" + std::to_string(i) + "]",
                  "a token id below " + std::to_string(context.model.vocab_size),
                  value(std::int64_t{tokens[i]}));
  if (!from.ok()) return fail(from.error());
  const auto text = context.engine.detokenize(context.model.id, tokens);
  if (!text.ok()) return fail(from_engine(text.code(), text.detail()));
  std::string out;
  json_writer(out)
      .begin_object()
      .field("prompt", text.value())
      .field("content", text.value())
      .end_object();
  return out;
}

result<std::string> tokenizer_info_body(const actors::model_info& model,
                                        const actors::engine_port& engine) {
  const auto described = engine.describe_tokenizer(model.id);
  if (!described.ok()) return fail(from_engine(described.code(), described.detail()));
  const auto& info = described.value();
  std::string out;
  json_writer json(out);
  json.begin_object()
      .field("tokenizer_class", info.kind)
      .field("model_max_length", model.max_model_len)
      .field("vocab_size", model.vocab_size)
      .field("add_bos_token", info.adds_bos);
  const auto text_of_token = [&](const char* name, std::int32_t id) {
    json.key(name);
    if (id < 0) return (void)json.add(nullptr);
    const auto piece = engine.pieces(model.id, {id});
    if (piece.ok())
      json.add(piece.value().front().bytes);
    else
      json.add(nullptr);
  };
  text_of_token("bos_token", info.bos_id);
  text_of_token("eos_token", info.eos_id);
  json.field("pad_token", nullptr).key("added_tokens_decoder").begin_object();
  for (const auto& token : info.special)
    json.key(std::to_string(token.id))
        .begin_object()
        .field("content", token.bytes)
        .field("special", true)
        .end_object();
  json.end_object().key("chat_template");
  if (info.chat_template.empty())
    json.add(nullptr);
  else
    json.add(info.chat_template);
  json.end_object();
  return out;
}

} // namespace twill::net
