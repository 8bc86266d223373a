#include "tests/fuzz/driver.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

#include "config/base/log.hpp"
#include "tests/fuzz/mutate.hpp"

namespace twill::fuzz {
namespace {

constexpr unsigned round_seconds = 20;

const target* chosen() {
  static const target* const found = [] {
    log::configure(log::level::off);
    const char* name = std::getenv("TWILL_FUZZ_TARGET");
    const auto at = targets().find(name == nullptr ? "" : name);
    return at == targets().end() ? nullptr : &at->second;
  }();
  return found;
}

void run(const target& what, const std::string& input) {
  // The bytes get an allocation of their own, so that AddressSanitizer sees a read past their end.
  const std::vector<char> bytes(input.begin(), input.end());
  ::alarm(round_seconds);
  what.run({bytes.data(), bytes.size()});
  ::alarm(0);
}

void keep(const std::string& path, const std::string& input) {
  std::ofstream(path, std::ios::binary) << input;
}

std::string kept_path(const std::string& name) {
  return "/tmp/twill-fuzz-" + name + "-" + std::to_string(::getpid());
}

void damage_seeds(const std::string& name, const target& what, int seconds, generator random) {
  for (const auto& seed : what.seeds)
    run(what, seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  const auto& seeds = what.seeds;
  long rounds = 0;
  for (; std::chrono::steady_clock::now() < end; ++rounds) {
    const auto input =
        mutate(random, seeds[draw(random, seeds.size())], seeds[draw(random, seeds.size())]);
    keep(kept_path(name), input); // so that the input is found after a crash
    run(what, input);
  }
  std::remove(kept_path(name).c_str());
  std::printf("%s: %ld rounds\n", name.c_str(), rounds);
}

/// Replays a corpus file: a sequence of inputs, each preceded by its length in decimal digits and a
/// line end. Returns the number of inputs.
int replay(const std::string& path, const std::string& name, const target& what) {
  std::ifstream in(path, std::ios::binary);
  std::size_t length = 0;
  int n = 0;
  for (; in >> length && in.get() == '\n'; ++n) {
    std::string input(length, '\0');
    in.read(input.data(), static_cast<std::streamsize>(length));
    expect(static_cast<std::size_t>(in.gcount()) == length, "a corpus holds whole inputs");
    keep(kept_path(name), input);
    run(what, input);
  }
  std::remove(kept_path(name).c_str());
  return n;
}

int replay_all(const std::string& folder) {
  int empty = 0;
  for (const auto& [name, what] : targets()) {
    for (const auto& seed : what.seeds)
      run(what, seed);
    const int n = replay(folder + "/" + name + ".corpus", name, what);
    std::printf("%s: %d inputs\n", name.c_str(), n);
    empty += n == 0;
  }
  return empty == 0 ? 0 : 1;
}

void write_seeds(const target& what, const std::string& folder) {
  int n = 0;
  for (const auto& seed : what.seeds)
    keep(folder + "/seed" + std::to_string(n++), seed);
}

} // namespace

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

int run_program(int argc, char** argv) {
  log::configure(log::level::off);
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "replay" && argc == 3) return replay_all(argv[2]);
  const auto named = targets().find(first);
  if (named != targets().end() && argc >= 3) {
    const auto seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
    damage_seeds(first, named->second, std::atoi(argv[2]), generator(seed));
    return 0;
  }
  std::fprintf(stderr, "usage: %s TARGET SECONDS [RANDOM_SEED] | replay FOLDER; targets:", argv[0]);
  for (const auto& entry : targets())
    std::fprintf(stderr, " %s", entry.first.c_str());
  std::fprintf(stderr, "\n");
  return 2;
}

} // namespace twill::fuzz

/// libFuzzer calls this before it reads its corpus, so the seeds that this writes belong to it.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const auto* what = twill::fuzz::chosen();
  twill::fuzz::expect(what != nullptr, "TWILL_FUZZ_TARGET names a target");
  if (const char* folder = std::getenv("TWILL_FUZZ_SEEDS")) twill::fuzz::write_seeds(*what, folder);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  twill::fuzz::chosen()->run({reinterpret_cast<const char*>(data), size});
  return 0;
}

#ifndef TWILL_LIBFUZZER
int main(int argc, char** argv) {
  return twill::fuzz::run_program(argc, argv);
}
#endif
