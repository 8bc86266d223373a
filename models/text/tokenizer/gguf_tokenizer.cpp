#include "models/text/tokenizer/gguf_tokenizer.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/base/log.hpp"
#include "models/text/detokenizer.hpp"
#include "models/text/tokenizer/byte_level.hpp"
#include "models/text/tokenizer/char_bpe.hpp"
#include "models/text/tokenizer/pipeline_tokenizer.hpp"
#include "models/text/tokenizer/token_table.hpp"

namespace twill::models {
namespace {

// Values of tokenizer.ggml.token_type (GGUF specification, llama_token_type).
enum class token_type : std::int64_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

/// True for text of lower-case letters only. Some control tokens are such words, for example
/// ChatGLM's "sop". Their text also occurs within ordinary words, so only chat templates may write
/// these tokens.
bool is_one_word(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

class gguf_builder {
public:
  explicit gguf_builder(const gguf::metadata& metadata) : metadata_(metadata) {}

  result<std::shared_ptr<const tokenizer>> build() {
    for (const auto stage : {&gguf_builder::read_kind, &gguf_builder::read_tokens,
                             &gguf_builder::make_model, &gguf_builder::read_special_ids})
      if (auto done = (this->*stage)(); !done.ok()) return done.error();
    return make_pipeline_tokenizer(std::move(parts_));
  }

private:
  result<nothing> read_kind() {
    auto model = metadata_.get_string("tokenizer.ggml.model");
    if (!model.ok()) return model.error();
    if (model.value() == "llama") {
      is_byte_level_ = false;
      add_bos_ = true;
      parts_.kind = "gguf llama";
      return nothing{};
    }
    if (model.value() != "gpt2")
      return failure{errc::unsupported,
                     "tokenizer.ggml.model, must be gpt2 or llama, given " + model.value()};
    auto given = metadata_.get_string_or("tokenizer.ggml.pre", "");
    if (!given.ok()) return given.error();
    const std::string pre = given.value().empty() ? "default" : given.value();
    if (given.value().empty())
      log::warn("tokenizer.ggml.pre is absent, so that texts are cut into words as llama.cpp's "
                "default does; if the model answers badly, convert it again");
    auto kind = find_pretokenizer(pre);
    if (!kind.ok()) return kind.error();
    auto words = pretokenizer::from_steps(kind.value().steps);
    if (!words.ok()) return words.error();
    parts_.words_of = std::move(words).value();
    byte_level_.ignore_merges = kind.value().ignore_merges;
    add_bos_ = kind.value().add_bos_default;
    parts_.kind = "gguf gpt2 / " + pre;
    return nothing{};
  }

  result<nothing> read_tokens() {
    auto tokens = metadata_.get_strings("tokenizer.ggml.tokens");
    if (!tokens.ok()) return tokens.error();
    tokens_ = tokens.value();
    if (tokens_->empty() || tokens_->size() > std::numeric_limits<token_id>::max())
      return failure{errc::bad_metadata,
                     "tokenizer.ggml.tokens, must hold 1 to 2^31-1 tokens, given " +
                         std::to_string(tokens_->size())};
    const gguf::int_array* types = nullptr;
    if (metadata_.has("tokenizer.ggml.token_type")) {
      auto found = metadata_.get_ints("tokenizer.ggml.token_type");
      if (!found.ok()) return found.error();
      types = found.value();
      if (types->size() != tokens_->size())
        return failure{errc::bad_metadata,
                       "tokenizer.ggml.token_type, must have one entry per token (" +
                           std::to_string(tokens_->size()) + "), given " +
                           std::to_string(types->size())};
    }
    parts_.bytes.resize(tokens_->size());
    parts_.special.resize(tokens_->size());
    parts_.drops_space.resize(tokens_->size());
    usable_.resize(tokens_->size());
    spaced_.byte_ids.fill(-1);
    for (std::size_t i = 0; i < tokens_->size(); ++i)
      add_token(static_cast<token_id>(i),
                types == nullptr ? token_type::normal : static_cast<token_type>((*types)[i]));
    return nothing{};
  }

  void add_token(token_id id, token_type type) {
    const std::string& text = (*tokens_)[static_cast<std::size_t>(id)];
    std::string& bytes = parts_.bytes[static_cast<std::size_t>(id)];
    bytes = text;
    switch (type) {
    case token_type::control:
    case token_type::unknown:
      parts_.special[static_cast<std::size_t>(id)] = true;
      if (type == token_type::control)
        parts_.specials.add(text, id, is_one_word(text) ? special_template : special_control);
      return;
    case token_type::user_defined:
      parts_.specials.add(text, id, looks_like_markup(text) ? special_control : special_plain);
      ids_.try_emplace(text, id);
      return;
    case token_type::unused:
      return;
    default:
      break;
    }
    is_byte_level_ ? add_byte_level(text, bytes, id) : add_spaced(text, bytes, id, type);
  }

  void add_byte_level(const std::string& text, std::string& bytes, token_id id) {
    if (auto decoded = byte_level_decode(text)) bytes = std::move(*decoded);
    ids_.try_emplace(text, id);
    if (byte_level_.ignore_merges) byte_level_.words.try_emplace(bytes, id);
  }

  void add_spaced(const std::string& text, std::string& bytes, token_id id, token_type type) {
    const auto at = static_cast<std::size_t>(id);
    if (const int byte = byte_of_token(text); type == token_type::byte && byte >= 0) {
      bytes = std::string(1, static_cast<char>(byte));
      spaced_.byte_ids[static_cast<std::size_t>(byte)] = id;
      return;
    }
    bytes = spaces_for_marks(text);
    parts_.drops_space[at] = text.starts_with(space_mark);
    // Merging works on whole characters.
    usable_[at] = !text.empty() && is_utf8(text);
  }

  result<nothing> make_model() {
    auto unknown = optional_id("unknown");
    if (!unknown.ok()) return unknown.error();
    unknown_ = static_cast<token_id>(unknown.value());
    return is_byte_level_ ? make_byte_level() : make_spaced();
  }

  result<nothing> make_byte_level() {
    const std::string where = "tokenizer.ggml.merges";
    auto found = metadata_.get_strings(where);
    if (!found.ok()) return found.error();
    merge_list merges;
    merges.reserve(found.value()->size());
    for (const std::string& line : *found.value()) {
      const auto merge = split_merge(line);
      if (!merge)
        return failure{errc::bad_metadata,
                       where + "[" + std::to_string(merges.size()) +
                           "], must be two tokens with a space between, given \"" + line + "\""};
      merges.push_back(*merge);
    }
    auto merge_table = make_merges(ids_, merges, where);
    if (!merge_table.ok()) return merge_table.error();
    byte_level_.merges = std::move(merge_table).value();
    byte_level_.byte_ids = byte_level_ids(ids_);
    byte_level_.unknown = unknown_;
    parts_.model = make_byte_bpe(std::move(byte_level_));
    return nothing{};
  }

  result<nothing> make_spaced() {
    auto found = metadata_.get_floats("tokenizer.ggml.scores");
    if (!found.ok()) return found.error();
    if (found.value()->size() != tokens_->size())
      return failure{errc::bad_metadata, "tokenizer.ggml.scores, must have one entry per token (" +
                                             std::to_string(tokens_->size()) + "), given " +
                                             std::to_string(found.value()->size())};
    std::vector<float> scores(found.value()->begin(), found.value()->end());
    if (!std::all_of(scores.begin(), scores.end(), [](float s) { return std::isfinite(s); }))
      return failure{errc::bad_metadata, "tokenizer.ggml.scores, must be finite"};
    add_score_merges(*tokens_, scores, usable_, spaced_);
    spaced_.byte_fallback = true;
    spaced_.unknown = unknown_;
    parts_.model = make_char_bpe(std::move(spaced_));

    auto prefix = metadata_.get_bool_or("tokenizer.ggml.add_space_prefix", true);
    if (!prefix.ok()) return prefix.error();
    parts_.normal = normalizer({replace_text(" ", std::string(space_mark))});
    if (prefix.value())
      parts_.words_of = pretokenizer({dummy_prefix(std::string(space_mark))});
    else
      parts_.drops_space.clear();
    parts_.restarts_after_special = true;
    return nothing{};
  }

  /// Returns the id under an optional key; -1 if the key is absent or if a converter wrote -1.
  result<std::int64_t> optional_id(std::string_view name) const {
    const std::string key = "tokenizer.ggml." + std::string(name) + "_token_id";
    constexpr std::int64_t none = std::numeric_limits<std::uint32_t>::max();
    const auto given = metadata_.get_int_or(key, -1, none, -1);
    if (given.ok() && (given.value() == none || given.value() == -1)) return std::int64_t{-1};
    return metadata_.get_int_or(key, 0, static_cast<std::int64_t>(tokens_->size()) - 1, -1);
  }

  result<nothing> read_special_ids() {
    for (const char* name : {"eos", "eot", "eom"}) {
      auto id = optional_id(name);
      if (!id.ok()) return id.error();
      if (id.value() >= 0) add_end(parts_, static_cast<token_id>(id.value()));
      if (std::string_view(name) == "eos") parts_.eos = static_cast<token_id>(id.value());
    }
    add_known_ends(parts_);
    add_hand_overs();
    auto bos = optional_id("bos");
    if (!bos.ok()) return bos.error();
    parts_.bos = static_cast<token_id>(bos.value());
    auto add_bos = metadata_.get_bool_or("tokenizer.ggml.add_bos_token", add_bos_);
    if (!add_bos.ok()) return add_bos.error();
    if (add_bos.value() && parts_.bos >= 0) parts_.prefix.push_back(parts_.bos);
    auto add_eos = metadata_.get_bool_or("tokenizer.ggml.add_eos_token", false);
    if (!add_eos.ok()) return add_eos.error();
    if (add_eos.value() && parts_.eos >= 0) parts_.suffix.push_back(parts_.eos);
    return nothing{};
  }

  /// ChatGLM ends an answer with the token of the role that speaks next, <|user|> or
  /// <|observation|>. Its GGUF files rarely name these tokens as end tokens, so they are added
  /// here.
  void add_hand_overs() {
    const auto find = [this](std::string_view text) {
      for (std::size_t i = 0; i < parts_.bytes.size(); ++i)
        if (parts_.special[i] && parts_.bytes[i] == text) return static_cast<token_id>(i);
      return token_id{-1};
    };
    if (find("[gMASK]") < 0) return;
    for (const char* role : {"<|user|>", "<|observation|>"})
      if (const token_id id = find(role); id >= 0) add_end(parts_, id);
  }

  const gguf::metadata& metadata_;
  const gguf::string_array* tokens_ = nullptr;
  token_map ids_; ///< ids by the spelling of the file
  bool is_byte_level_ = true;
  bool add_bos_ = false;
  token_id unknown_ = -1;
  byte_bpe_parts byte_level_;
  char_bpe_parts spaced_;
  std::vector<bool> usable_; ///< whether merging may make the token of this id
  pipeline_parts parts_;
};

} // namespace

result<std::shared_ptr<const tokenizer>> make_gguf_tokenizer(const gguf::metadata& metadata) {
  return gguf_builder(metadata).build();
}

} // namespace twill::models
