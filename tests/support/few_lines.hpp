// few_lines: while an object of this class exists, only errors are logged. It is for tests that
// start and stop something so often that a failure would be hard to find among the log lines. At
// most one such object may exist at a time.
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
