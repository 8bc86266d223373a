// fuzz_tokenizers SEEDS FAMILY SECONDS [RANDOM_SEED]: damages one file of a copy of the tokenizer
// folder SEEDS at a time, opens the copy and, if it opens, encodes, decodes and renders texts with
// it.
//
// The program is meant for the sanitizer build. A crash, a sanitizer's report, or a round that
// takes more than 20 s or 2 GiB is a finding; the damaged folder stays under the path printed at
// the start.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "models/checkpoint/json.hpp"
#include "models/families/registry.hpp"
#include "models/text/chat_conventions.hpp"
#include "models/text/chat_template.hpp"
#include "models/text/template_sources.hpp"
#include "models/text/tokenizer/folder_tokenizer.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/use.hpp"

namespace {

namespace fs = std::filesystem;
using namespace twill;
using namespace twill::fuzz;

constexpr unsigned round_seconds = 20;
constexpr long most_memory_kib = 2L << 20;

struct seed {
  std::string name, bytes;
};

std::vector<seed> read_seeds(const fs::path& folder) {
  std::vector<seed> seeds;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || entry.file_size() > (1U << 18) || name.starts_with("golden") ||
        name == "tokenizer_golden.json")
      continue;
    std::ifstream in(entry.path(), std::ios::binary);
    seeds.push_back({name, std::string(std::istreambuf_iterator<char>(in), {})});
  }
  std::sort(seeds.begin(), seeds.end(),
            [](const seed& a, const seed& b) { return a.name < b.name; });
  return seeds;
}

/// Gives a component of a tokenizer.json another type, which changes of bytes seldom produce.
std::string change_type(generator& random, std::string bytes) {
  static const std::vector<std::string> types = {"NFC",
                                                 "NFKD",
                                                 "Lowercase",
                                                 "Strip",
                                                 "StripAccents",
                                                 "Nmt",
                                                 "Prepend",
                                                 "Replace",
                                                 "Precompiled",
                                                 "Sequence",
                                                 "ByteLevel",
                                                 "Split",
                                                 "Metaspace",
                                                 "Digits",
                                                 "Whitespace",
                                                 "Punctuation",
                                                 "Fuse",
                                                 "ByteFallback",
                                                 "BPE",
                                                 "Unigram",
                                                 "TemplateProcessing",
                                                 "WhitespaceSplit",
                                                 "CharDelimiterSplit",
                                                 "RobertaProcessing"};
  constexpr std::string_view key = "\"type\"";
  std::vector<std::size_t> places;
  for (std::size_t at = bytes.find(key); at != bytes.npos; at = bytes.find(key, at + 1))
    places.push_back(at + key.size());
  if (places.empty()) return bytes;
  const std::size_t begin = bytes.find('"', places[draw(random, places.size())]);
  const std::size_t end = begin == bytes.npos ? bytes.npos : bytes.find('"', begin + 1);
  if (end != bytes.npos)
    bytes.replace(begin + 1, end - begin - 1, types[draw(random, types.size())]);
  return bytes;
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// True when the folder opened.
bool try_folder(const std::string& path, const std::string& family) {
  const auto json = [&](const char* name) {
    auto read = models::read_json_file(path + "/" + name, 1 << 22);
    return read.ok() ? std::move(read).value() : value();
  };
  const value config = json("config.json"), tokens = json("tokenizer_config.json"),
              generation = json("generation_config.json");
  const auto* known = models::families::find(family);
  if (known == nullptr) return false;
  const auto opened = models::make_folder_tokenizer({.path = path,
                                                     .hints = known->tokenizer,
                                                     .config = &config,
                                                     .tokenizer_config = &tokens,
                                                     .generation_config = &generation});
  if (!opened.ok()) return false;
  const models::tokenizer& text = *opened.value();
  use_tokenizer(text);
  models::template_sources sources = models::folder_template_sources(path, &tokens);
  if (sources.main.empty())
    sources.main = models::known_chat_template(known->chat, {config, text, &generation});
  sources.others.emplace_back("default", sources.main);
  for (const auto& [name, source] : sources.others) {
    const auto parsed = models::chat_template::parse(source, text.token_bytes(text.bos_id(), true),
                                                     text.token_bytes(text.eos_id(), true));
    if (parsed.ok()) use_template(*parsed.value(), &text);
  }
  return true;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: fuzz_tokenizers SEEDS FAMILY SECONDS [RANDOM_SEED]\n");
    return 2;
  }
  const std::vector<seed> seeds = read_seeds(argv[1]);
  std::string pattern = (fs::temp_directory_path() / "twill-fuzz-XXXXXX").string();
  if (seeds.empty() || ::mkdtemp(pattern.data()) == nullptr) return 2;
  const fs::path work = pattern;
  for (const seed& s : seeds)
    write(work / s.name, s.bytes);
  if (!try_folder(work.string(), argv[2])) {
    std::fprintf(stderr, "%s: holds no tokenizer of family %s\n", argv[1], argv[2]);
    return 2;
  }
  std::printf("%s: %zu seeds, input in %s\n", argv[1], seeds.size(), work.c_str());
  std::fflush(stdout);

  generator random(argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[3]));
  long rounds = 0, accepted = 0;
  for (; std::chrono::steady_clock::now() < end; ++rounds) {
    const seed& from = seeds[draw(random, seeds.size())];
    const seed& other = seeds[draw(random, seeds.size())];
    std::string bytes = draw(random, 3) == 0 ? change_type(random, from.bytes) : from.bytes;
    if (draw(random, 4) != 0) bytes = mutate(random, std::move(bytes), other.bytes);
    write(work / from.name, bytes);
    ::alarm(round_seconds);
    accepted += try_folder(work.string(), argv[2]) ? 1 : 0;
    ::alarm(0);
    struct rusage use {};
    ::getrusage(RUSAGE_SELF, &use);
    if (use.ru_maxrss > most_memory_kib) {
      std::fprintf(stderr, "a round took %ld KiB of memory\n", use.ru_maxrss);
      return 1;
    }
    write(work / from.name, from.bytes);
  }
  std::printf("%s: %ld rounds, %ld accepted\n", argv[1], rounds, accepted);
  fs::remove_all(work);
  return 0;
}
