// driver: the interface between a common main() and the fuzz programs of this folder whose inputs
// are short texts.
//
// A program defines targets(). driver.cpp has the program's main(), which damages seeds at random
// or replays a corpus, and LLVMFuzzerTestOneInput for clang's libFuzzer. All of it runs on one
// thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace twill::fuzz {

struct target {
  void (*run)(std::string_view); ///< aborts when a check of the target fails
  std::vector<std::string> seeds;
};

/// The targets of this program, by name.
const std::map<std::string, target>& targets();

/// Ends the program when `holds` is false.
void expect(bool holds, const char* what);

} // namespace twill::fuzz
