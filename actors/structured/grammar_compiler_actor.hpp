// grammar compiler: the actor that compiles grammars, on its own thread. A grammar that takes long
// delays other grammars, never a step: sessions submit their prompt once they have their grammar.
#pragma once

#include <memory>

#include "actors/interfaces.hpp"
#include "actors/structured/grammar_service.hpp"

namespace twill::actors {

grammar_compiler_actor spawn_grammar_compiler(caf::actor_system& system,
                                              std::shared_ptr<grammar_service> service);

} // namespace twill::actors
