// Random requests with everything that a client can ask of an output.
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

/// The request that `numbers` name. What it bans and what it stops at is taken from the output of a
/// simpler request, so that it bites.
actors::request request_of(const operation& numbers, const small_model& model,
                           const draw_output& draw);

} // namespace twill::test
