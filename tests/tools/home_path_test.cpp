#include "tools/common/home_path.hpp"

#include <cstdlib>
#include <string>

#include "tests/catch.hpp"
#include "tests/tools/variables.hpp"

using namespace twill::tools;
using twill::tests::variable_scope;

TEST_CASE("a tilde at the beginning of a path stands for the home", "[tools]") {
  const variable_scope home("HOME", "/home/me");
  CHECK(expand_home("~") == "/home/me");
  CHECK(expand_home("~/m.gguf") == "/home/me/m.gguf");
  for (const char* path : {"", "/m~", "a/~/m", "~other/m", "./~", "hf:a/b", "dummy:7b"})
    CHECK(expand_home(path) == path);
  const variable_scope none("HOME", nullptr);
  CHECK(expand_home("~/m.gguf") == "~/m.gguf");
}
