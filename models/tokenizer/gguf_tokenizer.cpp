#include "models/tokenizer/gguf_tokenizer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/tokenizer/byte_level.hpp"
#include "models/tokenizer/byte_level_tokenizer.hpp"

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

// Tokens that end a generation in published models, whatever the file calls its EOS.
constexpr std::string_view known_ends[] = {
    "<|im_end|>", "<|endoftext|>",   "<|eot_id|>",         "<|eom_id|>",
    "<|end|>",    "<|end_of_text|>", "<end_of_turn>",      "<|endofturn|>",
    "<|eot|>",    "<|return|>",      "<|call|>",           "<|END_OF_TURN_TOKEN|>",
    "<|EOT|>",    "<EOT>",           "<end_of_utterance>", "<｜end▁of▁sentence｜>",
};

// A user-defined token that a chat template could use as structure, such as "<tool_call>".
bool looks_like_markup(std::string_view text) {
  if (text.size() < 3) return false;
  return (text.front() == '<' && text.back() == '>') || (text.front() == '[' && text.back() == ']');
}

class builder {
public:
  explicit builder(const gguf::metadata& metadata) : metadata_(metadata) {}

  result<std::shared_ptr<const tokenizer>> build() {
    for (const auto step : {&builder::read_kind, &builder::read_tokens, &builder::read_merges,
                            &builder::read_special_ids})
      if (auto done = (this->*step)(); !done.ok()) return done.error();
    return make_byte_level_tokenizer(std::move(parts_));
  }

private:
  result<nothing> read_kind() {
    auto model = metadata_.get_string("tokenizer.ggml.model");
    if (!model.ok()) return model.error();
    if (model.value() != "gpt2")
      return failure{errc::unsupported,
                     "tokenizer.ggml.model, must be gpt2, given " + model.value()};
    auto pre = metadata_.get_string("tokenizer.ggml.pre");
    if (!pre.ok()) return pre.error();
    auto kind = find_pretokenizer(pre.value());
    if (!kind.ok()) return kind.error();
    auto words = pretokenizer::make(kind.value().expressions);
    if (!words.ok()) return words.error();
    parts_.words_of = std::move(words).value();
    parts_.ignore_merges = kind.value().ignore_merges;
    add_bos_ = kind.value().add_bos_default;
    parts_.kind = "gguf gpt2 / " + pre.value();
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
    for (std::size_t i = 0; i < tokens_->size(); ++i)
      add_token(static_cast<token_id>(i),
                types == nullptr ? token_type::normal : static_cast<token_type>((*types)[i]));
    for (unsigned b = 0; b < 256; ++b) {
      const auto it = ids_.find(byte_level_char(static_cast<std::uint8_t>(b)));
      parts_.byte_ids[b] = it == ids_.end() ? -1 : it->second;
    }
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
      if (type == token_type::control) parts_.specials.add(text, id, special_control);
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
    if (auto decoded = byte_level_decode(text)) bytes = std::move(*decoded);
    ids_.try_emplace(text, id);
    if (parts_.ignore_merges) parts_.words.try_emplace(bytes, id);
  }

  result<nothing> read_merges() {
    auto found = metadata_.get_strings("tokenizer.ggml.merges");
    if (!found.ok()) return found.error();
    const gguf::string_array& merges = *found.value();
    parts_.merges = bpe(merges.size());
    const auto id_of = [this](std::string_view text) {
      const auto it = ids_.find(text);
      return it == ids_.end() ? token_id{-1} : it->second;
    };
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const std::string_view line = merges[rank];
      // The search starts at 1: the left token may itself be a space.
      const std::size_t space = line.find(' ', 1);
      const auto bad = [&](const char* rule) {
        return failure{errc::bad_metadata, "tokenizer.ggml.merges[" + std::to_string(rank) + "], " +
                                               rule + ", given \"" + std::string(line) + "\""};
      };
      if (space == std::string_view::npos || space + 1 == line.size())
        return bad("must be two tokens with a space between");
      const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
      const token_id l = id_of(left), r = id_of(right);
      const token_id merged = id_of(std::string(left).append(right));
      if (l < 0 || r < 0 || merged < 0)
        return bad("both tokens and their union must be in the vocabulary");
      parts_.merges.add_merge(l, r, static_cast<std::int32_t>(rank), merged);
    }
    return nothing{};
  }

  /// An id that may be absent (-1).
  result<std::int64_t> optional_id(std::string_view name) const {
    return metadata_.get_int_or("tokenizer.ggml." + std::string(name) + "_token_id", 0,
                                static_cast<std::int64_t>(tokens_->size()) - 1, -1);
  }

  void add_end(token_id id) {
    auto& ends = parts_.end_ids;
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  }

  result<nothing> read_special_ids() {
    for (const char* name : {"eos", "eot", "eom"}) {
      auto id = optional_id(name);
      if (!id.ok()) return id.error();
      if (id.value() >= 0) add_end(static_cast<token_id>(id.value()));
      if (std::string_view(name) == "eos") parts_.eos = static_cast<token_id>(id.value());
    }
    for (std::size_t i = 0; i < tokens_->size(); ++i)
      if (parts_.special[i] && std::find(std::begin(known_ends), std::end(known_ends),
                                         (*tokens_)[i]) != std::end(known_ends))
        add_end(static_cast<token_id>(i));
    auto bos = optional_id("bos");
    if (!bos.ok()) return bos.error();
    parts_.bos = static_cast<token_id>(bos.value());
    auto unknown = optional_id("unknown");
    if (!unknown.ok()) return unknown.error();
    parts_.unknown = static_cast<token_id>(unknown.value());

    auto add_bos = metadata_.get_bool_or("tokenizer.ggml.add_bos_token", add_bos_);
    if (!add_bos.ok()) return add_bos.error();
    if (add_bos.value() && parts_.bos >= 0) parts_.prefix.push_back(parts_.bos);
    auto add_eos = metadata_.get_bool_or("tokenizer.ggml.add_eos_token", false);
    if (!add_eos.ok()) return add_eos.error();
    if (add_eos.value() && parts_.eos >= 0) parts_.suffix.push_back(parts_.eos);
    return nothing{};
  }

  const gguf::metadata& metadata_;
  const gguf::string_array* tokens_ = nullptr;
  token_map ids_; ///< by the file's spelling
  bool add_bos_ = false;
  byte_level_parts parts_;
};

} // namespace

result<std::shared_ptr<const tokenizer>> make_gguf_tokenizer(const gguf::metadata& metadata) {
  return builder(metadata).build();
}

} // namespace twill::models
