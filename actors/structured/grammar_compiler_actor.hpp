// grammar compiler: the actor that compiles grammars, on its own thread. If compiling a grammar
// takes long, other grammars wait for it but no step does, because a session submits its prompt
// only once it has its grammar.
#pragma once

#include <memory>

#include "actors/interfaces.hpp"
#include "actors/structured/grammar_service.hpp"

namespace twill::actors {

grammar_compiler_actor spawn_grammar_compiler(caf::actor_system& system,
                                              std::shared_ptr<grammar_service> service);

} // namespace twill::actors
