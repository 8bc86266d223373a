// fuzz_formats FORMAT SEEDS SECONDS [RANDOM_SEED]: damages copies of the files in the folder SEEDS
// at random and reads each copy, until SECONDS have passed.
//
// FORMAT says how a copy is read. With safetensors, pytorch, gguf, json, template or model (a GGUF
// file, read with its tokenizer and template) each file is read by itself. With folder, SEEDS is a
// model folder, and all of it is read with one damaged file at a time. The program is meant for the
// sanitizer build. The input that caused a crash stays under the path printed at the start. Reading
// a damaged copy for more than 20 s or with more than 2 GiB of memory ends the program too.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/targets.hpp"

namespace {

namespace fs = std::filesystem;
using namespace twill::fuzz;

constexpr unsigned round_seconds = 20;
constexpr long most_memory_kib = 2L << 20;

struct seed {
  std::string name;
  std::string bytes;
};

std::vector<seed> read_seeds(const std::string& folder) {
  std::vector<seed> seeds;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.file_size() > (1U << 21)) continue;
    if (entry.path().filename().string().starts_with("golden")) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    seeds.push_back(
        {entry.path().filename().string(), std::string(std::istreambuf_iterator<char>(in), {})});
  }
  std::sort(seeds.begin(), seeds.end(),
            [](const seed& a, const seed& b) { return a.name < b.name; });
  return seeds;
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

} // namespace

int main(int argc, char** argv) {
  const std::map<std::string, bool (*)(const std::string&)> targets = {
      {"safetensors", open_safetensors},
      {"pytorch", open_pytorch},
      {"gguf", open_gguf},
      {"json", open_json},
      {"template", open_template},
      {"model", open_model},
      {"folder", open_folder}};
  const auto target = targets.find(argc > 1 ? argv[1] : "");
  if (argc < 4 || target == targets.end()) {
    std::fprintf(stderr, "usage: fuzz_formats safetensors|pytorch|gguf|json|template|model|folder "
                         "SEEDS SECONDS [RANDOM_SEED]\n");
    return 2;
  }
  const bool whole_folder = target->first == "folder";
  const std::vector<seed> seeds = read_seeds(argv[2]);
  if (seeds.empty()) {
    std::fprintf(stderr, "%s: no seeds of at most 2 MiB\n", argv[2]);
    return 2;
  }
  generator random(argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1);
  std::string pattern = (fs::temp_directory_path() / "twill-fuzz-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return 2;
  const fs::path work = pattern;
  if (whole_folder)
    for (const seed& s : seeds)
      write(work / s.name, s.bytes);
  std::printf("%s: %zu seeds, input in %s\n", argv[1], seeds.size(), work.c_str());
  std::fflush(stdout);

  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[3]));
  long rounds = 0, accepted = 0;
  for (; std::chrono::steady_clock::now() < end; ++rounds) {
    const seed& from = seeds[draw(random, seeds.size())];
    const seed& other = seeds[draw(random, seeds.size())];
    const fs::path input = work / (whole_folder ? from.name : "input");
    write(input, mutate(random, from.bytes, other.bytes));
    ::alarm(round_seconds);
    accepted += target->second(whole_folder ? work.string() : input.string()) ? 1 : 0;
    ::alarm(0);
    struct rusage use {};
    ::getrusage(RUSAGE_SELF, &use);
    if (use.ru_maxrss > most_memory_kib) {
      std::fprintf(stderr, "a round took %ld KiB of memory\n", use.ru_maxrss);
      return 1;
    }
    if (whole_folder) write(input, from.bytes);
  }
  std::printf("%s: %ld rounds, %ld accepted\n", argv[1], rounds, accepted);
  fs::remove_all(work);
  return 0;
}
