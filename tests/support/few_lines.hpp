// few_lines: while it lives, the log has errors alone. For tests that begin and end something so
// often that what failed would not be found among the lines about it. One at a time.
#pragma once

#include "config/base/log.hpp"

namespace twill::test {

struct few_lines {
  few_lines() { log::configure(log::level::error); }
  ~few_lines() { log::configure(log::level::info); }
  few_lines(const few_lines&) = delete;
  few_lines& operator=(const few_lines&) = delete;
};

} // namespace twill::test
