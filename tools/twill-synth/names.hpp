// Names of models/ that every writer uses: recipes and plans, and how failures are returned.
#pragma once

#include "models/errc.hpp"
#include "models/synth/recipe.hpp"

namespace twill::synth {

using namespace models::synth; // recipe, planned_tensor, vocabulary, ... and their functions
using models::errc;
using models::failure;
using models::result;

} // namespace twill::synth
