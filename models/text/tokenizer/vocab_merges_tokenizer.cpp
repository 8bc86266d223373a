// Reads vocab.json and merges.txt of a folder: the byte-level BPE of GPT-2, which OPT uses too.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/checkpoint/json.hpp"
#include "models/text/tokenizer/byte_level.hpp"
#include "models/text/tokenizer/folder_tokenizer.hpp"

namespace twill::models {
namespace {

result<merge_list> read_merges(std::string_view text, const std::string& path) {
  merge_list merges;
  for (std::size_t line = 1; !text.empty(); ++line) {
    std::string_view given = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), given.size() + 1));
    if (given.ends_with('\r')) given.remove_suffix(1);
    if (given.empty() || (line == 1 && given.starts_with("#version"))) continue;
    const auto merge = split_merge(given);
    if (!merge)
      return failure{errc::bad_format, path + ":" + std::to_string(line) +
                                           ": must be two tokens with a space between"};
    merges.push_back(*merge);
  }
  return merges;
}

result<token_map> read_vocabulary(const std::string& path, pipeline_parts& parts) {
  constexpr std::int64_t max_bytes = 64 << 20;
  auto file = read_json_file(path, max_bytes);
  if (!file.ok()) return file.error();
  const value_object* entries = file.value().as_object();
  if (entries == nullptr)
    return failure{errc::bad_format, path + ", must be an object of texts and ids"};
  parts.bytes.resize(entries->size());
  parts.special.resize(entries->size());
  token_map ids;
  unique_ids unique;
  for (const auto& [text, id] : *entries) {
    if (id.as_int() == nullptr)
      return failure{errc::bad_format, path + ", `" + text + "` must be a token id"};
    if (auto room = make_room(parts, *id.as_int()); !room.ok())
      return failure{room.code(), path + ", " + room.detail()};
    if (auto added = unique.add(text, *id.as_int()); !added.ok())
      return failure{added.code(), path + ", " + added.detail()};
    ids.try_emplace(text, static_cast<token_id>(*id.as_int()));
    parts.bytes[static_cast<std::size_t>(*id.as_int())] = byte_level_decode(text).value_or(text);
  }
  return ids;
}

/// Adds the special tokens: those that have names, and those that the folder's files add.
result<nothing> add_specials(const folder_files& files, const token_map& ids,
                             pipeline_parts& parts) {
  std::vector<added_token> tokens;
  for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token"})
    if (const auto text = named_token(files, name))
      if (const auto it = ids.find(*text); it != ids.end()) {
        added_token token;
        token.id = it->second;
        token.text = *text;
        tokens.push_back(std::move(token));
      }
  auto listed = read_added_tokens(files);
  if (!listed.ok()) return listed.error();
  erase_tokens_without_rows(files, listed.value());
  tokens.insert(tokens.end(), listed.value().begin(), listed.value().end());
  return place_added_tokens(tokens, parts);
}

} // namespace

result<std::shared_ptr<const tokenizer>> read_vocab_and_merges(const folder_files& files) {
  const std::string merges_path = files.path + "/merges.txt";
  pipeline_parts parts;
  parts.kind = "byte-level bpe";
  const auto ids = read_vocabulary(files.path + "/vocab.json", parts);
  if (!ids.ok()) return ids.error();
  const auto text = read_text_file(merges_path);
  if (!text.ok()) return text.error();
  const auto lines = read_merges(text.value(), merges_path);
  if (!lines.ok()) return lines.error();
  auto merges = make_merges(ids.value(), lines.value(), merges_path);
  if (!merges.ok()) return merges.error();
  if (auto added = add_specials(files, ids.value(), parts); !added.ok()) return added.error();
  set_named_ids(
      files,
      [&](std::string_view name) {
        const auto it = ids.value().find(name);
        return it == ids.value().end() ? token_id{-1} : it->second;
      },
      parts);
  if (config_flag(files, "add_bos_token", files.hints.adds_bos.value_or(false)) && parts.bos >= 0)
    parts.prefix.push_back(parts.bos);

  byte_bpe_parts model;
  model.byte_ids = byte_level_ids(ids.value());
  model.merges = std::move(merges).value();
  if (const auto unknown = named_token(files, "unk_token"))
    if (const auto it = ids.value().find(*unknown); it != ids.value().end())
      model.unknown = it->second;
  parts.model = make_byte_bpe(std::move(model));
  std::vector<split_rule> rules;
  if (config_flag(files, "add_prefix_space", false)) rules.push_back(space_in_front());
  auto expression = regex::make(gpt2_expression);
  if (!expression.ok()) return expression.error();
  rules.push_back(split_by(std::move(expression).value(), match_behavior::isolated, false));
  parts.words_of = pretokenizer(std::move(rules));
  return make_pipeline_tokenizer(std::move(parts));
}

} // namespace twill::models
