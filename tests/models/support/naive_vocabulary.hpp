// A plain reader of the JSON and text files of a folder's tokenizer. Tests use it to find out what
// damaged files mean. It supports byte-level BPE in vocab.json with merges.txt and in
// tokenizer.json, and BPE of characters in tokenizer.json.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/support/naive_json.hpp"

namespace twill::test {

/// Thrown where a file contradicts its format.
struct contradiction : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct naive_vocabulary {
  struct token {
    std::string text; ///< the bytes that decoding appends
    bool special = false;
    bool known = false; ///< false: no token has this id
  };
  std::vector<token> tokens;
  std::map<std::string, std::int64_t> ids; ///< by the text in the file
  std::vector<std::pair<std::string, std::string>> merges;
  std::int64_t bos = -1, eos = -1;
  bool takes_whole_words = false;

  void put(std::int64_t id, const std::string& text, bool special) {
    if (id < 0) throw contradiction("an id below 0");
    if (id > std::int64_t{1} << 20) throw contradiction("an id far beyond the others");
    if (id >= std::ssize(tokens)) tokens.resize(static_cast<std::size_t>(id) + 1);
    tokens[static_cast<std::size_t>(id)] = {text, special, true};
  }

  /// The ids of a word that is given as single bytes: the best pair is merged again and again.
  std::vector<std::int64_t> encode(const std::vector<std::string>& spelled) const {
    std::vector<std::string> parts = spelled;
    std::string whole;
    for (const auto& part : parts)
      whole += part;
    if (takes_whole_words && ids.contains(whole)) return {ids.at(whole)};
    for (;;) {
      std::size_t best = merges.size(), at = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i)
        for (std::size_t rank = 0; rank < best; ++rank)
          if (merges[rank].first == parts[i] && merges[rank].second == parts[i + 1])
            best = rank, at = i;
      if (best == merges.size()) break;
      parts[at] += parts[at + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    std::vector<std::int64_t> out;
    for (const auto& part : parts)
      if (ids.contains(part)) out.push_back(ids.at(part));
    return out;
  }
};

/// The byte-level alphabet of GPT-2: a printable byte is written as itself, any other byte as a
/// character from U+0100 on.
inline std::string naive_bytes(const std::string& spelled) {
  static const std::map<std::string, char> alphabet = [] {
    std::map<std::string, char> all;
    unsigned next = 256;
    for (unsigned b = 0; b < 256; ++b) {
      const bool shown = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      const unsigned c = shown ? b : next++;
      std::string text(1, static_cast<char>(c));
      if (c >= 128) text = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
      all[text] = static_cast<char>(b);
    }
    return all;
  }();
  std::string bytes;
  for (std::size_t at = 0, n = 1; at < spelled.size(); at += n) {
    n = (static_cast<unsigned char>(spelled[at]) & 0xE0) == 0xC0 ? 2 : 1;
    const auto found = alphabet.find(spelled.substr(at, n));
    if (found == alphabet.end()) return spelled; // not in the alphabet: returned unchanged
    bytes += found->second;
  }
  return bytes;
}

/// What decoding writes for a token of a vocabulary of characters.
inline std::string naive_spaced(const std::string& token) {
  unsigned byte = 0;
  char end = 0;
  if (token.size() == 6 && std::sscanf(token.c_str(), "<0x%2X%c", &byte, &end) == 2 && end == '>' &&
      std::none_of(token.begin() + 3, token.end(), [](char c) { return c >= 'a' && c <= 'f'; }))
    return {static_cast<char>(byte)};
  std::string out = token;
  for (std::size_t at = 0; (at = out.find("\xE2\x96\x81", at)) != std::string::npos; ++at)
    out.replace(at, 3, " ");
  return out;
}

class naive_folder {
public:
  explicit naive_folder(std::string path) : path_(std::move(path)) {}

  /// Reads the folder, or throws `contradiction`. `byte_level` says how tokens are spelled.
  naive_vocabulary read(bool byte_level) {
    naive_vocabulary v;
    const bool is_json = std::filesystem::exists(path_ + "/tokenizer.json");
    const value file = is_json ? document("tokenizer.json") : value(value_object{});
    const value model = is_json ? at(file, "model") : value(value_object{});
    read_ids(v, is_json ? at(model, "vocab") : document("vocab.json"), byte_level);
    is_json ? read_pairs(v, at(model, "merges")) : read_lines(v);
    const auto token_of = [&](const std::string& name) { return v.ids.contains(name); };
    for (const auto& [left, right] : v.merges)
      if (!token_of(left) || !token_of(right) || !token_of(left + right))
        throw contradiction("a merge of what is no token");
    if (is_json) read_added(v, file);
    const value* whole = model.find("ignore_merges");
    v.takes_whole_words = whole != nullptr && *whole == value(true);
    if (!is_json)
      for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token"})
        if (const auto text = named(name); text && v.ids.contains(*text))
          v.put(v.ids.at(*text), *text, true);
    for (auto& [name, into] : {std::pair{"bos_token", &v.bos}, {"eos_token", &v.eos}})
      if (const auto text = named(name); text && v.ids.contains(*text)) *into = v.ids.at(*text);
    return v;
  }

private:
  static const value& at(const value& object, const char* name) {
    const value* found = object.find(name);
    if (found == nullptr) throw contradiction(std::string("no ") + name);
    return *found;
  }

  value document(const std::string& name) const {
    const auto read = naive_json(read_file(path_ + "/" + name));
    if (!read || read->as_object() == nullptr) throw contradiction(name + " is no object");
    return *read;
  }

  /// Reads the vocabulary, in which each text has one id and each id has one text.
  static void read_ids(naive_vocabulary& v, const value& ids, bool byte_level) {
    if (ids.as_object() == nullptr) throw contradiction("the vocabulary is no object");
    for (const auto& [text, id] : *ids.as_object()) {
      if (id.as_int() == nullptr) throw contradiction("an id that is no number");
      const std::int64_t n = *id.as_int();
      if (n >= 0 && n < std::ssize(v.tokens) && v.tokens[static_cast<std::size_t>(n)].known)
        throw contradiction("two texts of one id");
      v.put(n, byte_level ? naive_bytes(text) : naive_spaced(text), false);
      v.ids[text] = n;
    }
  }

  static void add_merge(naive_vocabulary& v, const std::string& line) {
    const std::size_t space = line.empty() ? line.npos : line.find(' ', 1);
    if (space == line.npos || space + 1 == line.size()) throw contradiction("a merge of one");
    v.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }

  void read_lines(naive_vocabulary& v) const {
    std::string line;
    bool is_first = true;
    for (const char c : read_file(path_ + "/merges.txt") + '\n') {
      if (c != '\n') {
        line += c;
        continue;
      }
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty() && !(is_first && line.starts_with("#version"))) add_merge(v, line);
      line.clear();
      is_first = false;
    }
  }

  static void read_pairs(naive_vocabulary& v, const value& merges) {
    if (merges.as_list() == nullptr) throw contradiction("merges are no list");
    for (const value& one : *merges.as_list()) {
      const auto* pair = one.as_list();
      if (one.as_string() != nullptr) {
        add_merge(v, *one.as_string());
      } else if (pair != nullptr && pair->size() == 2 && (*pair)[0].as_string() != nullptr &&
                 (*pair)[1].as_string() != nullptr) {
        v.merges.emplace_back(*(*pair)[0].as_string(), *(*pair)[1].as_string());
      } else {
        throw contradiction("a merge that is no pair");
      }
    }
  }

  /// Each id has one text. For a text that is in the vocabulary, `ids` keeps the vocabulary's id.
  static void read_added(naive_vocabulary& v, const value& file) {
    const value* added = file.find("added_tokens");
    if (added == nullptr || added->is_null()) return;
    if (added->as_list() == nullptr) throw contradiction("added tokens are no list");
    std::vector<std::pair<std::int64_t, std::string>> seen;
    for (const value& token : *added->as_list()) {
      const auto& id = at(token, "id");
      const auto& text = at(token, "content");
      const value* special = token.find("special");
      if (id.as_int() == nullptr || text.as_string() == nullptr)
        throw contradiction("an added token without id or text");
      for (const auto& [other, its_text] : seen)
        if (other == *id.as_int() && its_text != *text.as_string())
          throw contradiction("an added token with two texts");
      if (special != nullptr && !special->is_null() && special->as_bool() == nullptr)
        throw contradiction("a flag that is none");
      seen.emplace_back(*id.as_int(), *text.as_string());
      v.put(*id.as_int(), *text.as_string(), special != nullptr && *special == value(true));
      v.ids.try_emplace(*text.as_string(), *id.as_int());
    }
  }

  /// The text that `name` stands for in tokenizer_config.json, else in special_tokens_map.json.
  std::optional<std::string> named(const char* name) const {
    std::vector<value> files;
    for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"})
      if (std::filesystem::exists(path_ + "/" + file)) files.push_back(document(file));
    for (const value& names : files) {
      const value* found = names.find(name);
      if (found != nullptr && found->as_object() != nullptr) found = found->find("content");
      if (found != nullptr && found->as_string() != nullptr && !found->as_string()->empty())
        return *found->as_string();
    }
    return std::nullopt;
  }

  std::string path_;
};

} // namespace twill::test
