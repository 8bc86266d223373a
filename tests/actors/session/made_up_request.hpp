// made_up_request: derives a request from the numbers of three random operations
// (tests/support/operations.hpp), and with it the model's context and KV, the tenant's budget, and
// the model's format of tool calls.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/detail/served_model.hpp"
#include "actors/port/engine_port.hpp"
#include "config/options.hpp"
#include "tests/support/operations.hpp"

namespace session_tests {

/// Draws small numbers from one number.
class digits {
public:
  explicit digits(std::uint32_t number) : rest_(number) {}
  std::uint32_t below(std::uint32_t n) {
    const std::uint32_t digit = rest_ % n;
    rest_ /= n;
    return digit;
  }
  bool one_in(std::uint32_t n) { return below(n) == n - 1; }

private:
  std::uint32_t rest_;
};

struct made_up_request {
  made_up_request(const twill::test::operation& text, const twill::test::operation& limits,
                  const twill::test::operation& around);

  twill::actors::request asked;
  twill::config::limit_options options;
  std::shared_ptr<twill::actors::served_model> model;
  std::vector<std::int32_t> prompt; ///< the prompt's ids after encoding
  bool begun_reasoning = false;     ///< the prompt ends where reasoning begins
  bool has_budget = false;
  std::int64_t used_before = 0;   ///< tokens that the tenant's budget has lost before
  std::int32_t cached_tokens = 0; ///< tokens of the prompt that are cached when it runs
};

} // namespace session_tests
