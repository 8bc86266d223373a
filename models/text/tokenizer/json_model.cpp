#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "models/text/detokenizer.hpp"
#include "models/text/tokenizer/byte_level.hpp"
#include "models/text/tokenizer/char_bpe.hpp"
#include "models/text/tokenizer/json_parts.hpp"
#include "models/text/tokenizer/unigram.hpp"

namespace twill::models::json {
namespace {

bool is_set(const value& model, std::string_view name) {
  const value* found = model.find(name);
  if (is_absent(found)) return false;
  if (const auto number = found->as_number()) return *number != 0;
  return found->as_string() == nullptr || !found->as_string()->empty();
}

result<nothing> read_vocabulary(const value& model, token_map& vocabulary) {
  const value* vocab = model.find("vocab");
  if (vocab == nullptr || vocab->as_object() == nullptr)
    return malformed("`model.vocab`, must be an object of texts and ids");
  for (const auto& [text, id] : *vocab->as_object()) {
    if (id.as_int() == nullptr || *id.as_int() < 0 ||
        *id.as_int() > std::numeric_limits<token_id>::max())
      return malformed("`model.vocab`, `" + text + "` must be a token id");
    // Merging works on whole characters.
    if (!is_utf8(text)) return malformed("`model.vocab`, texts must be valid UTF-8");
    vocabulary.try_emplace(text, static_cast<token_id>(*id.as_int()));
  }
  return nothing{};
}

/// Reads merges, each of which is a text "left right" or a pair.
result<merge_list> read_merges(const value& model) {
  merge_list merges;
  const value* list = model.find("merges");
  if (list == nullptr || list->as_list() == nullptr)
    return malformed("`model.merges`, must be a list");
  merges.reserve(list->as_list()->size());
  for (const value& entry : *list->as_list()) {
    const auto wrong = [&] {
      return malformed("`model.merges[" + std::to_string(merges.size()) + "]`, must be two tokens");
    };
    if (const std::string* line = entry.as_string()) {
      const auto merge = split_merge(*line);
      if (!merge) return wrong();
      merges.push_back(*merge);
      continue;
    }
    const value_list* pair = entry.as_list();
    if (pair == nullptr || pair->size() != 2 || (*pair)[0].as_string() == nullptr ||
        (*pair)[1].as_string() == nullptr)
      return wrong();
    merges.emplace_back(*(*pair)[0].as_string(), *(*pair)[1].as_string());
  }
  return merges;
}

token_id id_of(const token_map& vocabulary, std::string_view text) {
  const auto it = vocabulary.find(text);
  return it == vocabulary.end() ? -1 : it->second;
}

std::unique_ptr<const word_model> byte_model(const value& model, const token_map& vocabulary,
                                             bpe merges, token_id unknown) {
  byte_bpe_parts parts;
  parts.byte_ids = byte_level_ids(vocabulary);
  parts.merges = std::move(merges);
  parts.unknown = unknown;
  parts.ignore_merges = flag(model, "ignore_merges", false);
  if (parts.ignore_merges)
    for (const auto& [text, id] : vocabulary)
      if (auto bytes = byte_level_decode(text)) parts.words.try_emplace(std::move(*bytes), id);
  return make_byte_bpe(std::move(parts));
}

std::unique_ptr<const word_model> char_model(const value& model, const token_map& vocabulary,
                                             const merge_list& list, bpe merges, token_id unknown) {
  char_bpe_parts parts;
  parts.tokens = vocabulary;
  parts.merges = std::move(merges);
  parts.first_extra = std::numeric_limits<token_id>::max(); // every character is a token or unknown
  parts.byte_fallback = flag(model, "byte_fallback", false);
  parts.ignore_merges = flag(model, "ignore_merges", false);
  parts.fuse_unknown = flag(model, "fuse_unk", false);
  parts.unknown = unknown;
  parts.byte_ids.fill(-1);
  for (const auto& [text, id] : vocabulary)
    if (const int byte = byte_of_token(text); byte >= 0)
      parts.byte_ids[static_cast<std::size_t>(byte)] = id;
  const auto stands_for_other_text = [&](std::string_view text) {
    return byte_of_token(text) >= 0 || (unknown >= 0 && id_of(vocabulary, text) == unknown);
  };
  for (const auto& [left, right] : list) {
    parts.joined.push_back(std::string(left).append(right));
    if (stands_for_other_text(left) || stands_for_other_text(right)) parts.cut = false;
  }
  return make_char_bpe(std::move(parts));
}

result<model_part> read_bpe(const value& model, bool byte_level) {
  for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    if (is_set(model, name))
      return failure{errc::unsupported,
                     "`model." + std::string(name) + "`, must be null: twill does not know it"};
  model_part part;
  part.kind = byte_level ? "byte-level bpe" : "bpe";
  if (auto read = read_vocabulary(model, part.vocabulary); !read.ok()) return read.error();
  const auto list = read_merges(model);
  if (!list.ok()) return list.error();
  auto merges = make_merges(part.vocabulary, list.value(), "`model.merges`");
  if (!merges.ok()) return merges.error();
  const token_id unknown = id_of(part.vocabulary, text(model, "unk_token"));
  part.model = byte_level ? byte_model(model, part.vocabulary, std::move(merges).value(), unknown)
                          : char_model(model, part.vocabulary, list.value(),
                                       std::move(merges).value(), unknown);
  return part;
}

result<model_part> read_unigram(const value& model) {
  const value* vocab = model.find("vocab");
  if (vocab == nullptr || vocab->as_list() == nullptr)
    return malformed("`model.vocab`, must be a list of texts and scores");
  model_part part;
  part.kind = "unigram";
  unigram_parts parts;
  for (const value& entry : *vocab->as_list()) {
    const value_list* pair = entry.as_list();
    const bool is_pair = pair != nullptr && pair->size() == 2 && (*pair)[0].as_string() != nullptr;
    const value score = is_pair ? (*pair)[1] : value();
    const double number = score.as_number().value_or(std::nan(""));
    if (!std::isfinite(number) || !is_utf8(*(*pair)[0].as_string()))
      return malformed("`model.vocab[" + std::to_string(parts.pieces.size()) +
                       "]`, must be a text and a finite score");
    const auto id = static_cast<token_id>(parts.pieces.size());
    part.vocabulary.try_emplace(*(*pair)[0].as_string(), id);
    parts.pieces.emplace_back(*(*pair)[0].as_string(), number);
  }
  const value* unknown = model.find("unk_id");
  if (unknown != nullptr && unknown->as_int() != nullptr) {
    if (*unknown->as_int() < 0 ||
        *unknown->as_int() >= static_cast<std::int64_t>(parts.pieces.size()))
      return malformed("`model.unk_id`, must be a piece");
    parts.unknown = static_cast<token_id>(*unknown->as_int());
  }
  parts.byte_fallback = flag(model, "byte_fallback", false);
  part.model = make_unigram(parts);
  return part;
}

} // namespace

result<model_part> read_model(const value* section, bool byte_level) {
  if (is_absent(section)) return malformed("`model`, must be given");
  std::string_view type = type_of(*section);
  if (type.empty() && section->find("merges") != nullptr) type = "BPE"; // older files have no type
  if (type == "BPE") return read_bpe(*section, byte_level);
  if (type == "Unigram" && !byte_level) return read_unigram(*section);
  return unknown("model", *section);
}

} // namespace twill::models::json
