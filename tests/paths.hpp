// paths: where the checkout and its golden files lie. The paths are compiled into paths.o alone, so
// that the objects of all tests are the same in every checkout and ccache finds them.
#pragma once

#include <string>

namespace twill::test {

/// The environment's TWILL_TEST_SOURCE, or else the source folder of the build.
const std::string& source_dir();
const std::string& golden_dir(); ///< source_dir()/tests/golden

} // namespace twill::test
