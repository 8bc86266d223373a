// Reads a *.tiktoken file of a folder: each line has the bytes of a token in base64, and its rank.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/tokenizer/base64.hpp"
#include "models/text/tokenizer/folder_tokenizer.hpp"

namespace twill::models {
namespace {

constexpr std::size_t max_token_bytes = 4096;

/// Returns the bytes of the tokens by rank. The ranks must count up from 0.
result<std::vector<std::string>> read_ranks(std::string_view text, const std::string& path) {
  std::vector<std::string> tokens;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view given = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), given.size() + 1));
    if (given.empty()) continue;
    const std::size_t space = given.find(' ');
    const auto bytes = decode_base64(given.substr(0, space));
    std::int64_t rank = -1;
    const char* const end = given.data() + given.size();
    if (space != std::string_view::npos &&
        std::from_chars(given.data() + space + 1, end, rank).ptr != end)
      rank = -1;
    if (!bytes || bytes->empty() || bytes->size() > max_token_bytes ||
        rank != static_cast<std::int64_t>(tokens.size()))
      return failure{errc::bad_format, path + ":" + std::to_string(line) +
                                           ": must be a token in base64 and the next rank, given " +
                                           std::string(given.substr(0, 80))};
    tokens.push_back(*bytes);
  }
  return tokens;
}

/// Makes merges as tiktoken does: any two adjacent tokens merge if their joined text is a token,
/// and the pair whose joined text has the lowest rank merges first.
bpe merges_of(const std::vector<std::string>& tokens, const token_map& ids) {
  struct rule {
    token_id left, right, merged;
  };
  std::vector<rule> rules;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view whole = tokens[i];
    for (std::size_t at = 1; at < whole.size(); ++at) {
      const auto left = ids.find(whole.substr(0, at));
      if (left == ids.end()) continue;
      const auto right = ids.find(whole.substr(at));
      if (right != ids.end())
        rules.push_back({left->second, right->second, static_cast<token_id>(i)});
    }
  }
  bpe merges(rules.size());
  for (const rule& r : rules)
    merges.add_merge(r.left, r.right, r.merged, r.merged);
  return merges;
}

void add_special(pipeline_parts& parts, std::string text) {
  parts.specials.add(text, static_cast<token_id>(parts.bytes.size()), special_control);
  parts.bytes.push_back(std::move(text));
  parts.special.push_back(true);
}

} // namespace

result<std::shared_ptr<const tokenizer>> read_tiktoken(const folder_files& files,
                                                       const std::string& path) {
  const tiktoken_rules* rules = files.hints.tiktoken;
  if (rules == nullptr)
    return failure{errc::unsupported,
                   path + ": a file of ranks has no special tokens and no expression that splits a "
                          "text; twill knows those of some families, of which this is none"};
  auto text = read_text_file(path);
  if (!text.ok()) return text.error();
  auto tokens = read_ranks(text.value(), path);
  if (!tokens.ok()) return tokens.error();

  pipeline_parts parts;
  parts.kind = "tiktoken " + std::string(rules->name);
  byte_bpe_parts model;
  model.byte_ids.fill(-1);
  model.ignore_merges = true; // tiktoken first looks up a whole word
  for (std::size_t i = 0; i < tokens.value().size(); ++i) {
    const std::string& token = tokens.value()[i];
    const auto id = static_cast<token_id>(i);
    if (!model.words.try_emplace(token, id).second)
      return failure{errc::bad_format,
                     path + ": tokens must be unique, given rank " + std::to_string(i) + " twice"};
    if (token.size() == 1) model.byte_ids[static_cast<std::uint8_t>(token[0])] = id;
  }
  model.merges = merges_of(tokens.value(), model.words);
  parts.model = make_byte_bpe(std::move(model));
  parts.special.resize(tokens.value().size());
  parts.bytes = std::move(tokens).value();
  parts.eos = static_cast<token_id>(parts.bytes.size());
  for (const std::string_view name : rules->specials)
    add_special(parts, std::string(name));
  for (int i = 0; i < rules->n_extras; ++i)
    add_special(parts, "<|extra_" + std::to_string(i) + "|>");

  auto split = find_pretokenizer(rules->pretokenizer);
  if (!split.ok()) return split.error();
  auto words = pretokenizer::from_steps(split.value().steps);
  if (!words.ok()) return words.error();
  parts.words_of = std::move(words).value();
  parts.normal = normalizer({to_normal_form(normal_form::nfc)}); // as QWenTokenizer does
  add_end(parts, parts.eos);
  add_known_ends(parts);
  return make_pipeline_tokenizer(std::move(parts));
}

} // namespace twill::models
