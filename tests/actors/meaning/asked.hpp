// Random requests that use everything a client can ask of an output.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "tests/actors/meaning/small_models.hpp"
#include "tests/support/operations.hpp"

namespace twill::test {

/// Draws the first choice's output of a request.
using draw_output = std::function<std::vector<std::int32_t>(const actors::request&)>;

/// The request that is derived from `numbers`. The strings that it bans and at which it stops are
/// taken from the output of a simpler request, so that they do occur.
actors::request request_of(const operation& numbers, const small_model& model,
                           const draw_output& draw);

} // namespace twill::test
