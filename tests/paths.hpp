// paths: where the checkout and its golden files lie. The paths are compiled into paths.o alone, so
// that the objects of all tests are the same in every checkout and ccache finds them.
#pragma once

#include <string>

namespace twill::test {

/// TWILL_TEST_SOURCE of the environment, or where the program was built.
const std::string& source_dir();
const std::string& golden_dir(); ///< source_dir()/tests/golden

} // namespace twill::test
