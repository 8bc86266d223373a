#include "tests/paths.hpp"

#include <cstdlib>

namespace twill::test {

const std::string& source_dir() {
  static const char* const moved = std::getenv("TWILL_TEST_SOURCE");
  static const std::string path = moved != nullptr ? moved : TWILL_SOURCE_DIR;
  return path;
}

const std::string& golden_dir() {
  static const std::string path = source_dir() + "/tests/golden";
  return path;
}

} // namespace twill::test
