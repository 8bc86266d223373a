// names: brings names of models/ into this namespace that all writers use: recipes and plans, and
// the types of failures.
#pragma once

#include "models/errc.hpp"
#include "models/synth/recipe.hpp"

namespace twill::synth {

using namespace models::synth; // recipe, planned_tensor, vocabulary, ... and their functions
using models::errc;
using models::failure;
using models::result;

} // namespace twill::synth
