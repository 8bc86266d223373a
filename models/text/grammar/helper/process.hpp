// process: one grammar compiled by one helper process, watched until its limit. Any thread; blocks.
#pragma once

#include "models/text/grammar/compile.hpp"

namespace twill::models::grammar {

result<compiled_grammar_ptr> compile_in_helper(const config::grammar_spec& spec,
                                               const vocabulary_ptr& tokens,
                                               const compile_limits& limits,
                                               const std::function<bool()>& is_abandoned = {});

/// Where twill-grammar is when no path is given: beside the running program, as in a build tree, or
/// in libexec/, as installed.
std::string default_helper();

} // namespace twill::models::grammar
