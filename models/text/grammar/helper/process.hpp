// process: compiles one grammar in a new helper process and ends the process when it reaches a
// limit. Any thread may call it; the call blocks.
#pragma once

#include "models/text/grammar/compile.hpp"

namespace twill::models::grammar {

result<compiled_grammar_ptr> compile_in_helper(const config::grammar_spec& spec,
                                               const vocabulary_ptr& tokens,
                                               const compile_limits& limits,
                                               const std::function<bool()>& is_abandoned = {});

/// The path of twill-grammar if none is configured: beside the running program, as in a build tree,
/// or in libexec/, as in an installation.
std::string default_helper();

} // namespace twill::models::grammar
