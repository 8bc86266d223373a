// twill-tokenizer-bench FOLDER FILE [REPEATS]: measures how fast the tokenizer of a model folder
// encodes the text of a file on one thread. It prints the kind of the tokenizer, the number of
// tokens, and the best and the median speed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "config/base/standard_streams.hpp"
#include "models/open/folder_text.hpp"

int main(int argc, char** argv) {
  twill::open_missing_standard_streams();
  using clock = std::chrono::steady_clock;
  using seconds = std::chrono::duration<double>;
  if (argc < 3) {
    std::fprintf(stderr, "usage: twill-tokenizer-bench FOLDER FILE [REPEATS]\n"
                         "Measures how fast the tokenizer of a model's FOLDER encodes the text of "
                         "FILE; the default is 9 repeats.\n");
    return 2;
  }
  const auto begin = clock::now();
  const auto opened = twill::models::open_folder_tokenizer(argv[1]);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.detail().c_str());
    return 1;
  }
  const seconds loading = clock::now() - begin;
  std::ifstream in(argv[2], std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "FILE must be a file that can be read, got %s\n", argv[2]);
    return 1;
  }
  const std::string text(std::istreambuf_iterator<char>(in), {});
  std::vector<double> times;
  std::size_t n_tokens = 0;
  for (int left = argc > 3 ? std::max(1, std::atoi(argv[3])) : 9; left > 0; --left) {
    const auto start = clock::now();
    const auto ids = opened.value()->encode(text, {});
    times.push_back(seconds(clock::now() - start).count());
    if (!ids.ok()) {
      std::fprintf(stderr, "%s\n", ids.detail().c_str());
      return 1;
    }
    n_tokens = ids.value().size();
  }
  std::sort(times.begin(), times.end());
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  std::printf("%s: loaded in %.3f s, %zu tokens, best %.2f MB/s, median %.2f MB/s\n",
              opened.value()->kind().c_str(), loading.count(), n_tokens, megabytes / times.front(),
              megabytes / times[times.size() / 2]);
  return 0;
}
