#include "tools/twill/history_store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

using twill::tools::replace_file;
namespace fs = std::filesystem;

namespace {

struct folder {
  folder() {
    std::string name = (fs::temp_directory_path() / "twill-history-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~folder() { fs::remove_all(path); }
  fs::path path;
};

std::string read(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool put(std::FILE* to, const std::string& text) {
  return std::fputs(text.c_str(), to) >= 0;
}

} // namespace

TEST_CASE("a file is replaced whole or not at all, for its user alone", "[tools]") {
  const folder in;
  const auto file = in.path / "new" / "file";
  CHECK(replace_file(file, [](std::FILE* to) { return put(to, "one"); }));
  CHECK(read(file) == "one");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK_FALSE(replace_file(file, [](std::FILE* to) { return put(to, "half") && false; }));
  CHECK(read(file) == "one");
  // A temporary file left by a killed program does not prevent the next replacement.
  std::ofstream(in.path / "new" / "file.new") << "a longer text than the next one";
  CHECK(replace_file(file, [](std::FILE* to) { return put(to, "two"); }));
  CHECK(read(file) == "two");
  CHECK(std::distance(fs::directory_iterator(in.path / "new"), {}) == 1);
  CHECK_FALSE(replace_file("/proc/no/such/file", [](std::FILE*) { return true; }));
}

TEST_CASE("writers at once lose nothing of each other", "[tools]") {
  const folder in;
  const auto file = in.path / "file";
  std::vector<std::thread> writers;
  std::atomic<int> refused{0};
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      for (int n = 0; n < 25; ++n)
        while (!replace_file(file, [&](std::FILE* to) { return put(to, read(file) + "x"); }))
          ++refused;
    });
  for (auto& writer : writers)
    writer.join();
  CHECK(read(file) == std::string(100, 'x'));
}
