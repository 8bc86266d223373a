// Reads the tokenizer.model of a folder: the tokens in it, which SentencePiece calls pieces, and
// the tokens that the code of the model's family appends to them.
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/tokenizer/char_bpe.hpp"
#include "models/text/tokenizer/folder_tokenizer.hpp"
#include "models/text/tokenizer/json_parts.hpp"
#include "models/text/tokenizer/sentencepiece_file.hpp"
#include "models/text/tokenizer/sentencepiece_model.hpp"

namespace twill::models {
namespace {

using piece_type = sentencepiece_file::piece_type;

class sentencepiece_builder {
public:
  explicit sentencepiece_builder(const folder_files& files)
      : files_(files), path_(files.path + "/tokenizer.model") {}

  result<std::shared_ptr<const tokenizer>> build() {
    for (const auto stage :
         {&sentencepiece_builder::read_file, &sentencepiece_builder::add_pieces,
          &sentencepiece_builder::add_family_tokens, &sentencepiece_builder::add_listed_tokens,
          &sentencepiece_builder::make_rules, &sentencepiece_builder::name_ids})
      if (auto done = (this->*stage)(); !done.ok()) return done.error();
    return make_pipeline_tokenizer(std::move(parts_));
  }

private:
  result<nothing> read_file() {
    auto bytes = read_text_file(path_);
    if (!bytes.ok()) return bytes.error();
    auto parsed = sentencepiece_file::parse(bytes.value());
    if (!parsed.ok()) return in_file(path_, parsed.error());
    file_ = std::move(parsed).value();
    const bool is_bpe = file_.kind == sentencepiece_file::model_kind::bpe;
    parts_.kind = std::string("sentencepiece ") + (is_bpe ? "bpe" : "unigram");
    read_prefix();
    return nothing{};
  }

  /// Reads whether SentencePiece's dummy prefix (a space) is put before a text. Without `legacy` in
  /// tokenizer_config.json, LlamaTokenizer ignores what the model file says about the prefix, and
  /// CodeLlamaTokenizer ignores `add_prefix_space` too. With `legacy`, only the fast tokenizer
  /// class, the default of transformers, applies `add_prefix_space`.
  void read_prefix() {
    if (!files_.hints.reads_flags) return;
    const bool always =
        files_.tokenizer_config != nullptr &&
        json::text(*files_.tokenizer_config, "tokenizer_class").starts_with("CodeLlamaTokenizer");
    legacy_ = !always && config_flag(files_, "legacy", true);
    file_.add_dummy_prefix = (file_.add_dummy_prefix || !legacy_) &&
                             (always || config_flag(files_, "add_prefix_space", true));
  }

  result<nothing> add_pieces() {
    parts_.bytes.resize(file_.pieces.size());
    parts_.special.resize(file_.pieces.size());
    parts_.drops_space.resize(file_.pieces.size());
    for (std::size_t i = 0; i < file_.pieces.size(); ++i)
      if (auto done = add_piece(i); !done.ok()) return done;
    return nothing{};
  }

  result<nothing> add_piece(std::size_t i) {
    auto& piece = file_.pieces[i];
    const auto id = static_cast<token_id>(i);
    std::string& bytes = parts_.bytes[i];
    bytes = spaces_for_marks(piece.text);
    parts_.drops_space[i] =
        (file_.add_dummy_prefix || file_.remove_extra_spaces) && piece.text.starts_with(space_mark);
    switch (piece.type) {
    case piece_type::control:
      bytes = piece.text;
      parts_.special[i] = true;
      parts_.specials.add(piece.text, id,
                          files_.hints.pieces_for_templates ? special_template : special_control);
      break;
    case piece_type::unknown:
      parts_.special[i] = true;
      bytes = file_.unknown_text;
      break;
    case piece_type::byte:
      if (byte_of_token(piece.text) < 0)
        return failure{
            errc::bad_format,
            path_ + ": SentencePiece model, a byte piece must read <0x00> to <0xFF>, given " +
                piece.text};
      bytes = std::string(1, static_cast<char>(byte_of_token(piece.text)));
      break;
    case piece_type::user_defined:
      // The SentencePiece library finds user-defined tokens in any text, even in the text of a
      // user. Tokens that a chat template could use as structure, such as "<tool_call>", therefore
      // become special tokens.
      if (looks_like_markup(piece.text)) add_markup(id);
      break;
    default:
      break;
    }
    return nothing{};
  }

  void add_markup(token_id id) {
    auto& piece = file_.pieces[static_cast<std::size_t>(id)];
    parts_.specials.add(piece.text, id, special_control, {.joins = true});
    if (piece.type == piece_type::user_defined) piece.type = piece_type::control;
  }

  result<nothing> add_family_tokens() {
    for (const appended_token& token : files_.hints.appended)
      append(token);
    if (files_.generation_config == nullptr) return nothing{};
    for (const char* key : files_.hints.role_keys) {
      const value* id = files_.generation_config->find(key);
      if (id == nullptr || id->as_int() == nullptr) continue;
      if (*id->as_int() < 0 || *id->as_int() >= static_cast<std::int64_t>(file_.pieces.size()))
        return failure{errc::bad_metadata, "generation_config.json, `" + std::string(key) +
                                               "` must be a piece, given " +
                                               std::to_string(*id->as_int())};
      add_markup(static_cast<token_id>(*id->as_int()));
    }
    return nothing{};
  }

  void append(const appended_token& token) {
    const auto id = static_cast<token_id>(parts_.bytes.size());
    parts_.bytes.emplace_back(token.text);
    parts_.special.push_back(true);
    parts_.specials.add(token.text, id, token.for_templates ? special_template : special_control);
    if (token.in_prefix) parts_.prefix.push_back(id);
    if (token.ends_generation) parts_.end_ids.push_back(id);
  }

  result<nothing> add_listed_tokens() {
    auto tokens = read_added_tokens(files_);
    if (!tokens.ok()) return tokens.error();
    erase_tokens_without_rows(files_, tokens.value());
    std::erase_if(tokens.value(), [this](const added_token& token) {
      if (token.id < 0 || static_cast<std::size_t>(token.id) >= file_.pieces.size()) return false;
      return file_.pieces[static_cast<std::size_t>(token.id)].type == piece_type::control; // known
    });
    return place_added_tokens(tokens.value(), parts_);
  }

  result<nothing> make_rules() {
    // The pre-tokenizer puts the dummy prefix (a space) at the beginning of a text and, with
    // `legacy` in tokenizer_config.json, also after control tokens. The SentencePiece library would
    // put it in front of every word.
    const bool is_plain =
        file_.escape_spaces && !file_.remove_extra_spaces && !file_.space_is_suffix;
    if (file_.add_dummy_prefix && (is_plain || !legacy_)) {
      file_.add_dummy_prefix = false;
      parts_.words_of = pretokenizer({dummy_prefix(std::string(space_mark))});
    }
    parts_.restarts_after_special = legacy_;
    std::vector<normalize_rule> changes;
    if (!is_plain && !legacy_) changes.push_back(replace_text(std::string(space_mark), " "));
    if (!file_.charsmap.empty()) {
      auto rules = compiled_rules(file_.charsmap);
      if (!rules.ok()) return in_file(path_, rules.error());
      changes.push_back(std::move(rules).value());
    }
    parts_.normal = normalizer(std::move(changes));
    auto model = make_sentencepiece_model(
        file_, legacy_ ? "" : named_token(files_, "unk_token").value_or("<unk>"));
    if (!model.ok()) return in_file(path_, model.error());
    parts_.model = std::move(model).value();
    return nothing{};
  }

  result<nothing> name_ids() {
    const auto id_of = [this](std::string_view text) {
      for (std::size_t i = 0; i < parts_.bytes.size(); ++i)
        if (parts_.special[i] && parts_.bytes[i] == text) return static_cast<token_id>(i);
      return token_id{-1};
    };
    set_named_ids(files_, id_of, parts_);
    if (parts_.bos < 0) parts_.bos = id_of("<s>");
    if (parts_.eos < 0) parts_.eos = id_of("</s>");
    if (parts_.eos >= 0) add_end(parts_, parts_.eos);
    if (!files_.hints.reads_flags) return nothing{};
    if (config_flag(files_, "add_bos_token", files_.hints.adds_bos.value_or(true)) &&
        parts_.bos >= 0)
      parts_.prefix.push_back(parts_.bos);
    if (config_flag(files_, "add_eos_token", false) && parts_.eos >= 0)
      parts_.suffix.push_back(parts_.eos);
    return nothing{};
  }

  const folder_files& files_;
  const std::string path_;
  sentencepiece_file file_;
  bool legacy_ = true; ///< LlamaTokenizer's flag: a new text begins after a special token
  pipeline_parts parts_;
};

} // namespace

result<std::shared_ptr<const tokenizer>> read_sentencepiece(const folder_files& files) {
  return sentencepiece_builder(files).build();
}

} // namespace twill::models
