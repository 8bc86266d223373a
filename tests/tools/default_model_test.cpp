#include "tools/common/default_model.hpp"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/catch.hpp"
#include "tools/common/subprocess.hpp"
#include "tools/common/terminal.hpp"

using namespace twill::tools;
namespace fs = std::filesystem;

namespace {

/// Sets a variable for one test; null unsets it.
class variable {
public:
  variable(const char* name, const char* text) : name_(name) {
    if (const char* old = ::getenv(name)) {
      old_ = old;
      had_ = true;
    }
    text == nullptr ? ::unsetenv(name) : ::setenv(name, text, 1);
  }
  ~variable() { had_ ? ::setenv(name_, old_.c_str(), 1) : ::unsetenv(name_); }

private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

} // namespace

TEST_CASE("the default model lies in the user's cache folder", "[tools]") {
  const variable home("HOME", "/home/x");
  {
    const variable cache("XDG_CACHE_HOME", "/c");
    CHECK(default_model_path().value() == "/c/twill/models/SmolLM2-135M-Instruct.Q4_1.gguf");
  }
  for (const char* text : {(const char*)nullptr, "", "relative"}) {
    const variable cache("XDG_CACHE_HOME", text);
    CHECK(default_model_path().value() ==
          "/home/x/.cache/twill/models/SmolLM2-135M-Instruct.Q4_1.gguf");
  }
}

TEST_CASE("without a home there is no default model", "[tools]") {
  const variable home("HOME", nullptr);
  const variable cache("XDG_CACHE_HOME", nullptr);
  CHECK(default_model_path().code() == fetch_errc::no_home);
}

TEST_CASE("a model that is there is not fetched again", "[tools]") {
  std::string folder = (fs::temp_directory_path() / "twill-test-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const variable cache("XDG_CACHE_HOME", folder.c_str());
  const variable path("PATH", "/nowhere"); // python3 cannot be found
  CHECK(fetch_default_model().code() == fetch_errc::no_python);
  const fs::path target = default_model_path().value();
  CHECK(fs::is_empty(target.parent_path())); // nothing half-made is left
  std::ofstream(target) << "x";
  CHECK(fetch_default_model().value() == target.string());
  fs::remove_all(folder);
}

TEST_CASE("child processes report their exit status", "[tools]") {
  CHECK(run_quietly({"true"}) == 0);
  CHECK(run_quietly({"sh", "-c", "exit 7"}) == 7);
  CHECK(run_quietly({"sh", "-c", "kill -9 $$"}) == 137);
  CHECK(run_quietly({"no-such-program-twill"}) == 127);
}

TEST_CASE("control characters of foreign text do not reach a terminal", "[tools]") {
  CHECK(printable("a\x1b[31mb\r\n\tc\x7f") == "a\xef\xbf\xbd[31mb\xef\xbf\xbd\n\tc\xef\xbf\xbd");
  CHECK(printable("z\xc3\xa9") == "z\xc3\xa9");
  CHECK(printable("a\xc2\x9b"
                  "2Jb\xc2\xa9\xc2") == "a\xef\xbf\xbd"
                                        "2Jb\xc2\xa9\xc2");
}
