// names: brings the names of models/ that all writers of checkpoint formats use into the namespace
// twill::synth: recipes, plans, and the types of results and failures.
#pragma once

#include "models/errc.hpp"
#include "models/synth/recipe.hpp"

namespace twill::synth {

using namespace models::synth; // recipe, planned_tensor, vocabulary, ... and their functions
using models::errc;
using models::failure;
using models::result;

} // namespace twill::synth
