#include "models/text/tokenizer/token_table.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "config/base/log.hpp"
#include "models/checkpoint/json.hpp"
#include "models/checkpoint/lfs_pointer.hpp"
#include "models/checkpoint/quoted.hpp"

namespace twill::models {
namespace {

constexpr std::int64_t max_small_file_bytes = 64 << 20;

// Tokens that end a generation in published models, even if a file names another token as EOS.
constexpr std::string_view known_ends[] = {
    "<|im_end|>", "<|endoftext|>",   "<|eot_id|>",         "<|eom_id|>",
    "<|end|>",    "<|end_of_text|>", "<end_of_turn>",      "<|endofturn|>",
    "<|eot|>",    "<|return|>",      "<|call|>",           "<|END_OF_TURN_TOKEN|>",
    "<|EOT|>",    "<EOT>",           "<end_of_utterance>", "<｜end▁of▁sentence｜>",
};

bool flag_of(const value& entry, std::string_view name, bool otherwise) {
  const value* found = entry.find(name);
  return found != nullptr && found->as_bool() != nullptr ? *found->as_bool() : otherwise;
}

const std::string* text_of(const value& entry) {
  if (entry.as_string() != nullptr) return entry.as_string();
  const value* content = entry.find("content");
  return content == nullptr ? nullptr : content->as_string();
}

failure malformed(const std::string& what) {
  return {errc::bad_format, what};
}

/// Returns the id that the whole key spells as a number; -1 if the key is not a number.
std::int64_t id_of_key(std::string_view key) {
  std::int64_t id = -1;
  const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
  return read.ec == std::errc() && read.ptr == key.data() + key.size() ? id : -1;
}

/// The tokens of one file by their ids. If several files list a token, the first one counts.
class file_tokens {
public:
  file_tokens(std::string where, std::vector<added_token>& all)
      : where_(std::move(where)), all_(all) {}

  failure wrong(const std::string& what) const { return malformed(where_ + ", " + what); }

  result<nothing> add(added_token token) {
    token.file = where_;
    return add_to_list(own_, std::move(token));
  }

  void finish() {
    for (added_token& token : own_) {
      const auto same = [&](const added_token& t) { return t.id == token.id; };
      if (std::none_of(all_.begin(), all_.end(), same)) all_.push_back(std::move(token));
    }
  }

private:
  std::string where_;
  std::vector<added_token>& all_;
  std::vector<added_token> own_;
};

result<nothing> read_decoder(const value& decoder, const std::string& folder,
                             std::vector<added_token>& tokens) {
  file_tokens listed(folder + "/tokenizer_config.json, added_tokens_decoder", tokens);
  if (decoder.as_object() == nullptr) return listed.wrong("must be an object");
  for (const auto& [key, entry] : *decoder.as_object()) {
    if (id_of_key(key) < 0) return listed.wrong(quoted_name(key) + " must be a token id");
    auto token = to_added_token(entry, id_of_key(key));
    if (!token.ok()) return listed.wrong(token.detail());
    if (auto added = listed.add(std::move(token).value()); !added.ok())
      return listed.wrong(added.detail());
  }
  listed.finish();
  return nothing{};
}

result<nothing> read_added_file(const std::string& path, std::vector<added_token>& tokens) {
  auto file = read_json_file(path, max_small_file_bytes);
  if (!file.ok()) return file.error();
  file_tokens listed(path, tokens);
  if (file.value().as_object() == nullptr)
    return listed.wrong("must be an object of texts and ids");
  for (const auto& [text, id] : *file.value().as_object()) {
    if (id.as_int() == nullptr) return listed.wrong(quoted_name(text) + " must be a token id");
    added_token token;
    token.id = *id.as_int();
    token.text = text;
    token.special = looks_like_markup(text);
    if (auto added = listed.add(std::move(token)); !added.ok()) return listed.wrong(added.detail());
  }
  listed.finish();
  return nothing{};
}

std::vector<std::int64_t> listed_ids(const value* object, std::string_view name) {
  std::vector<std::int64_t> ids;
  const value* found = object == nullptr ? nullptr : object->find(name);
  if (found == nullptr) return ids;
  if (found->as_int() != nullptr) ids.push_back(*found->as_int());
  if (found->as_list() != nullptr)
    for (const value& id : *found->as_list())
      if (id.as_int() != nullptr) ids.push_back(*id.as_int());
  return ids;
}

} // namespace

result<added_token> to_added_token(const value& entry, std::int64_t id) {
  const std::string name = "token " + std::to_string(id);
  for (const char* flag : {"special", "normalized", "single_word", "lstrip", "rstrip"})
    if (const value* found = entry.find(flag);
        found != nullptr && !found->is_null() && found->as_bool() == nullptr)
      return malformed(name + ", `" + flag + "` must be true or false");
  const std::string* text = text_of(entry);
  if (text == nullptr) return malformed(name + " must have a content");
  added_token token;
  token.id = id;
  token.text = *text;
  token.special = flag_of(entry, "special", false);
  token.normalized = flag_of(entry, "normalized", !token.special);
  token.rules.single_word = flag_of(entry, "single_word", false);
  token.rules.lstrip = flag_of(entry, "lstrip", false);
  token.rules.rstrip = flag_of(entry, "rstrip", false);
  return token;
}

result<nothing> add_to_list(std::vector<added_token>& tokens, added_token token) {
  const auto same = std::find_if(tokens.begin(), tokens.end(),
                                 [&](const added_token& t) { return t.id == token.id; });
  if (same == tokens.end())
    tokens.push_back(std::move(token));
  else if (same->text != token.text)
    return malformed("token " + std::to_string(token.id) + " must have one text, given " +
                     quoted_name(same->text) + " and " + quoted_name(token.text));
  return nothing{};
}

result<nothing> unique_ids::add(const std::string& text, std::int64_t id) {
  const auto at = static_cast<std::size_t>(id);
  if (at >= text_of_.size()) text_of_.resize(std::max(at + 1, 2 * text_of_.size()));
  if (const std::string* before = std::exchange(text_of_[at], &text))
    return malformed("token " + std::to_string(id) + " must have one text, given " +
                     quoted_name(*before) + " and " + quoted_name(text));
  return nothing{};
}

result<std::vector<added_token>> read_added_tokens(const folder_files& files) {
  std::vector<added_token> tokens;
  const value* decoder = files.tokenizer_config == nullptr
                             ? nullptr
                             : files.tokenizer_config->find("added_tokens_decoder");
  if (decoder != nullptr)
    if (auto read = read_decoder(*decoder, files.path, tokens); !read.ok()) return read.error();
  const std::string path = files.path + "/added_tokens.json";
  if (std::filesystem::exists(path))
    if (auto read = read_added_file(path, tokens); !read.ok()) return read.error();
  std::sort(tokens.begin(), tokens.end(),
            [](const added_token& a, const added_token& b) { return a.id < b.id; });
  return tokens;
}

void erase_tokens_without_rows(const folder_files& files, std::vector<added_token>& tokens) {
  const auto has_row = [&](const added_token& t) { return t.id < files.embedding_rows; };
  const auto first = std::stable_partition(tokens.begin(), tokens.end(), has_row);
  if (first == tokens.end()) return;
  log::warn(files.path + ": the embedding has no row for " + std::to_string(tokens.end() - first) +
            " of the added tokens, such as " + quoted_name(first->text) + " (id " +
            std::to_string(first->id) + " of " + std::to_string(files.embedding_rows) +
            " rows); their texts are ordinary ones");
  tokens.erase(first, tokens.end());
}

std::optional<std::string> named_token(const folder_files& files, std::string_view name) {
  const auto text_in = [&](const value& object) -> std::optional<std::string> {
    const value* entry = object.find(name);
    const std::string* text = entry == nullptr ? nullptr : text_of(*entry);
    return text == nullptr || text->empty() ? std::nullopt : std::optional(*text);
  };
  if (files.tokenizer_config != nullptr)
    if (auto text = text_in(*files.tokenizer_config)) return text;
  return files.special_tokens_map == nullptr ? std::nullopt : text_in(*files.special_tokens_map);
}

result<nothing> make_room(pipeline_parts& parts, std::int64_t id) {
  constexpr std::size_t max_gap = 65536;
  const std::size_t limit = parts.bytes.size() + max_gap;
  if (id < 0 || static_cast<std::uint64_t>(id) >= limit)
    return failure{errc::bad_format, "added token, its id must be 0 to " +
                                         std::to_string(limit - 1) + ", given " +
                                         std::to_string(id)};
  const auto n = std::max(parts.bytes.size(), static_cast<std::size_t>(id) + 1);
  parts.bytes.resize(n);
  parts.special.resize(n);
  return nothing{};
}

result<nothing> place_added_tokens(const std::vector<added_token>& tokens, pipeline_parts& parts) {
  for (const added_token& token : tokens) {
    if (auto room = make_room(parts, token.id); !room.ok())
      return token.file.empty() ? room : in_file(token.file, room.error());
    const auto at = static_cast<std::size_t>(token.id);
    parts.bytes[at] = token.text;
    parts.special[at] = token.special;
    const bool is_control = token.special || looks_like_markup(token.text);
    // A plain token that is marked `normalized` is searched in the normalized text.
    const bool before = is_control || !token.normalized || parts.normal.empty();
    std::string text = token.text;
    if (!before) {
      auto changed = parts.normal.apply(text);
      if (!changed.ok()) return changed.error();
      text = std::move(changed).value();
    }
    (before ? parts.specials : parts.normalized)
        .add(text, static_cast<token_id>(token.id), is_control ? special_control : special_plain,
             token.rules);
  }
  return nothing{};
}

void add_end(pipeline_parts& parts, token_id id) {
  auto& ends = parts.end_ids;
  if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
}

void add_known_ends(pipeline_parts& parts) {
  for (std::size_t i = 0; i < parts.bytes.size(); ++i)
    if (parts.special[i] && std::find(std::begin(known_ends), std::end(known_ends),
                                      parts.bytes[i]) != std::end(known_ends))
      add_end(parts, static_cast<token_id>(i));
}

void set_named_ids(const folder_files& files,
                   const std::function<token_id(std::string_view)>& id_of, pipeline_parts& parts) {
  const auto n_tokens = static_cast<std::int64_t>(parts.bytes.size());
  const auto first_id = [&](const char* token, const char* id) -> token_id {
    if (const auto text = named_token(files, token))
      if (const token_id found = id_of(*text); found >= 0) return found;
    for (const value* object : {files.generation_config, files.config})
      for (const std::int64_t listed : listed_ids(object, id))
        if (listed >= 0 && listed < n_tokens) return static_cast<token_id>(listed);
    return -1;
  };
  parts.bos = first_id("bos_token", "bos_token_id");
  parts.eos = first_id("eos_token", "eos_token_id");
  if (parts.eos >= 0) add_end(parts, parts.eos);
  // Ids beyond the vocabulary are ignored, because the model can never generate them.
  for (const value* object : {files.generation_config, files.config})
    for (const std::int64_t id : listed_ids(object, "eos_token_id"))
      if (id >= 0 && id < n_tokens) add_end(parts, static_cast<token_id>(id));
  add_known_ends(parts);
}

bool config_flag(const folder_files& files, std::string_view name, bool otherwise) {
  return files.tokenizer_config == nullptr ? otherwise
                                           : flag_of(*files.tokenizer_config, name, otherwise);
}

result<std::string> read_text_file(const std::string& path) {
  constexpr std::uintmax_t max_bytes = 256 << 20;
  std::error_code failed;
  const auto size = std::filesystem::is_regular_file(path, failed)
                        ? std::filesystem::file_size(path, failed)
                        : max_bytes + 1;
  if (failed || size > max_bytes)
    return failure{errc::file_unreadable, path + ": must be a file of at most 256 MiB"};
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in) return failure{errc::file_unreadable, path + ": cannot be read"};
  if (is_lfs_pointer(text)) return failure{errc::file_unreadable, path + lfs_pointer_words};
  return text;
}

} // namespace twill::models
