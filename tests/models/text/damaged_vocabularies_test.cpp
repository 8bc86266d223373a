// Damaged files of BPE vocabularies (tokenizer.json; vocab.json with merges.txt; the files that
// name their tokens): opening them either fails with an error that names one of them, or gives
// the tokens, ids and merges that a naive reader finds.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "models/open/folder_text.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/ids_within.hpp"
#include "tests/models/support/naive_vocabulary.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/models/support/text_parts.hpp"
#include "tests/paths.hpp"
#include "tests/support/damage.hpp"
#include "tests/support/operations.hpp"

using namespace twill::models;
using namespace twill::test;
using twill::value;

namespace {

/// Whether the pre-tokenizers here leave `text` whole: letters, perhaps behind one space.
bool is_one_word(const std::string& text) {
  const std::size_t first = text.starts_with(' ') ? 1 : 0;
  return text.size() > first &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(first), text.end(),
                     [](char c) { return c >= 'a' && c <= 'z'; });
}

/// Encodes words that the merges make, and each word twice in a row.
std::string fault_of_words(const tokenizer& t, const naive_vocabulary& expected) {
  std::size_t n_words = 0;
  for (std::size_t i = 0; i < expected.merges.size(); ++i) {
    const bool is_end = i < 8 || i + 8 > expected.merges.size();
    if (!is_end && i % 16 != 0) continue;
    const std::string spelled = expected.merges[i].first + expected.merges[i].second;
    const std::string word = naive_bytes(spelled);
    if (!is_one_word(word)) continue;
    for (const std::string& text : {word, word + word.substr(word.starts_with(' ') ? 1 : 0)}) {
      std::vector<std::string> bytes;
      for (const char c : text)
        bytes.push_back(c == ' ' ? "\xC4\xA0" : std::string(1, c));
      const auto is = t.encode(text, {});
      const auto wanted = expected.encode(bytes);
      if (!is.ok() ||
          !std::equal(is.value().begin(), is.value().end(), wanted.begin(), wanted.end()))
        return "`" + text + "` has other ids";
      ++n_words;
    }
  }
  return n_words == 0 && !expected.merges.empty() ? "no word was tried" : "";
}

struct kind_of_folder {
  std::string name;
  bool byte_level = true;
  /// Members of tokenizer.json that the naive reading ignores, with their undamaged values.
  std::vector<std::pair<std::string, value>> others = {};
};

std::string fault_of_folder(const temp_folder& folder, const kind_of_folder& kind,
                            const std::string& file) {
  const auto opened = open_folder_tokenizer(folder.path());
  // If a vocabulary lacks a token of merges.txt, the error names merges.txt.
  const auto is_named = [&](const std::string& name) {
    return opened.detail().find(folder.file(name)) != std::string::npos;
  };
  if (!opened.ok() && !is_named(file) && !(file == "vocab.json" && is_named("merges.txt")))
    return "refused without the file's name: " + opened.detail();
  std::optional<naive_vocabulary> expected;
  std::string why;
  try {
    expected = naive_folder(folder.path()).read(kind.byte_level);
  } catch (const contradiction& found) {
    why = found.what();
  }
  if (opened.ok() && !expected) return "is read, though it has " + why;
  bool is_same = true; // whether all that decides how texts are cut and decoded is undamaged
  for (const auto& [name, was] : kind.others) {
    const auto now = naive_json(read_file(folder.file("tokenizer.json")));
    const value* member = now ? now->find(name) : nullptr;
    is_same = is_same && member != nullptr && *member == was;
  }
  if (!opened.ok())
    return expected && is_same && kind.others.empty() ? "refused: " + opened.detail() : "";
  const tokenizer& t = *opened.value();
  if (const auto fault = fault_of_ids(t); !fault.empty()) return fault;
  if (t.vocab_size() != std::ssize(expected->tokens))
    return std::to_string(t.vocab_size()) + " tokens, not " +
           std::to_string(expected->tokens.size());
  if (t.bos_id() != expected->bos) return "another BOS";
  if (t.eos_id() != expected->eos) return "another EOS";
  if (!is_same) return "";
  for (token_id id = 0; id < t.vocab_size(); ++id) {
    const auto& token = expected->tokens[static_cast<std::size_t>(id)];
    if (t.token_bytes(id, true) != token.text) return "token " + std::to_string(id) + " is another";
    if (t.is_special(id) != token.special)
      return "token " + std::to_string(id) + " is special, or is not";
  }
  return kind.byte_level ? fault_of_words(t, *expected) : "";
}

damage_options as_long_as_wanted() {
  damage_options options;
  options.sparse = std::getenv("TWILL_LONG") == nullptr;
  return options;
}

/// Describes what is wrong after damage to one file of a golden folder; empty if nothing is.
std::string faults_of(kind_of_folder kind, const std::string& file) {
  const temp_folder folder(golden_dir() + "/tokenizers/" + kind.name);
  folder.remove("tokenizer_golden.json");
  folder.write("config.json", R"({"architectures": ["OPTForCausalLM"]})");
  const std::string whole = read_file(folder.file(file));
  if (file == "tokenizer.json") {
    const value read = *naive_json(whole);
    for (const char* name : {"normalizer", "pre_tokenizer", "post_processor", "decoder"})
      kind.others.emplace_back(name, *read.find(name));
  }
  if (const auto fault = fault_of_folder(folder, kind, file); !fault.empty())
    return "undamaged: " + fault;
  const bool is_long = std::getenv("TWILL_LONG") != nullptr;
  return faults_after_damage(
      whole, parts_of_text(whole.size(), is_long ? 900 : 180),
      [&](const damage&, const std::string& damaged) {
        folder.write(file, damaged);
        return fault_of_folder(folder, kind, file);
      },
      as_long_as_wanted());
}

} // namespace

TEST_CASE("damage to vocab.json, merges.txt or the names of tokens is refused or read as it is",
          "[damage]") {
  for (const char* file : {"vocab.json", "merges.txt", "special_tokens_map.json"}) {
    CAPTURE(file);
    CHECK(faults_of({"opt-bpe"}, file) == "");
  }
}

TEST_CASE("damage to a tokenizer.json is refused or read as it is", "[damage]") {
  CHECK(faults_of({"fast-bytelevel-llama3"}, "tokenizer.json") == "");
  CHECK(faults_of({"fast-spm-metaspace", false}, "tokenizer.json") == "");
}

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text)
    out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + '"';
}

/// A small vocabulary as a correct writer makes it, which operations then damage.
struct written_vocabulary {
  struct entry {
    std::string text;
    std::int64_t id;
  };
  std::vector<entry> entries, added;
  std::vector<std::pair<std::string, std::string>> merges;
  bool has_odd_merge = false; ///< a merge of three tokens, or of one
  bool is_odd_long = false;

  written_vocabulary() {
    for (char c = 'a'; c <= 'h'; ++c)
      entries.push_back({std::string(1, c), c - 'a'});
    const std::pair<const char*, const char*> pairs[] = {{"a", "b"}, {"c", "d"},     {"ab", "cd"},
                                                         {"e", "f"}, {"abcd", "ef"}, {"g", "h"}};
    for (const auto& [left, right] : pairs) {
      merges.emplace_back(left, right);
      entries.push_back({std::string(left) + right, std::ssize(entries)});
    }
    for (const char* text : {"<|a|>", "<|b|>", "<|c|>"})
      added.push_back({text, std::ssize(entries) + std::ssize(added)});
  }

  void change(const operation& op) {
    auto& list = op.kind % 3 == 0 ? added : entries;
    if (op.kind % 3 == 2) return change_merges(op);
    if (list.empty()) return;
    // The first entry, the last one and a random one are equally likely.
    const std::size_t n = list.size();
    const auto place = [n](std::uint32_t number) {
      return number % 3 == 0 ? 0 : number % 3 == 1 ? n - 1 : number / 3 % n;
    };
    const std::size_t at = place(op.a);
    entry& one = list[at];
    const entry other = list[place(op.b)];
    switch (op.c % 6) {
    case 0:
      one.id = other.id;
      break;
    case 1:
      one.text = other.text;
      break;
    case 2: // a negative id, or one that may leave a hole
      one.id = op.b % 5 == 0 ? -1 : std::int64_t{op.b % 40};
      break;
    case 3:
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 4:
      list.push_back(other);
      break;
    default:
      one.id += std::int64_t{1} << (op.b % 2 == 0 ? 31 : 40);
    }
  }

  void change_merges(const operation& op) {
    if (op.c % 5 == 4) has_odd_merge = true, is_odd_long = op.a % 2 == 0;
    if (merges.empty()) return;
    const std::size_t at = op.a % merges.size(), other = op.b % merges.size();
    if (op.c % 5 == 0) merges.erase(merges.begin() + static_cast<std::ptrdiff_t>(at));
    if (op.c % 5 == 1) std::swap(merges[at], merges[other]);
    if (op.c % 5 == 2) merges[at].second = merges[other].second;
    if (op.c % 5 == 3) merges.push_back(merges[at]);
  }

  std::string vocab() const {
    std::string out = "{";
    for (const entry& e : entries)
      out += (out.size() == 1 ? "" : ", ") + quoted(e.text) + ": " + std::to_string(e.id);
    return out + "}";
  }
  std::string lines() const {
    std::string out = "#version: 0.2\n";
    for (const auto& [left, right] : merges)
      out += left + ' ' + right + '\n';
    if (has_odd_merge) out += is_odd_long ? "a b a\n" : "a\n";
    return out;
  }
  std::string json() const {
    std::string tokens, pairs;
    for (const entry& e : added)
      tokens += (tokens.empty() ? "" : ", ") + ("{\"id\": " + std::to_string(e.id)) +
                ", \"special\": true, \"content\": " + quoted(e.text) + "}";
    for (const auto& [left, right] : merges)
      pairs += (pairs.empty() ? "[" : ", [") + quoted(left) + ", " + quoted(right) + "]";
    if (has_odd_merge)
      pairs += (pairs.empty() ? "" : ", ") +
               std::string(is_odd_long ? R"(["a", "b", "a"])" : R"(["a"])");
    return R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
               "decoder": {"type": "ByteLevel"}, "added_tokens": [)" +
           tokens + R"(], "model": {"type": "BPE", "vocab": )" + vocab() + ", \"merges\": [" +
           pairs + "]}}";
  }
};

} // namespace

TEST_CASE("a vocabulary with ids, texts or merges twice, missing or far away is refused or read as "
          "it is",
          "[damage]") {
  const std::vector<std::vector<std::string>> kinds = {{"vocab.json", "merges.txt"},
                                                       {"tokenizer.json"}};
  for (const auto& files : kinds) {
    CAPTURE(files.front());
    const bool is_json = files.size() == 1;
    const temp_folder folder;
    folder.write("config.json", R"({"architectures": ["OPTForCausalLM"]})");
    folder.write("tokenizer_config.json", R"({"bos_token": "<|a|>", "eos_token": "<|c|>"})");
    sequences which;
    which.cases = 1500;
    which.most_operations = 4;
    CHECK(first_failure(which, [&](const operations& sequence) {
            written_vocabulary written;
            for (const operation& op : sequence)
              written.change(op);
            folder.write(files[0], is_json ? written.json() : written.vocab());
            if (!is_json) folder.write(files[1], written.lines());
            const auto fault = fault_of_folder(folder, {""}, files.front());
            demand(fault.empty() || fault == "no word was tried", fault);
          }) == "");
  }
}
