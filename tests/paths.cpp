#include "tests/paths.hpp"

namespace twill::test {

const std::string& source_dir() {
  static const std::string path = TWILL_SOURCE_DIR;
  return path;
}

const std::string& golden_dir() {
  static const std::string path = source_dir() + "/tests/golden";
  return path;
}

} // namespace twill::test
