// The errors of models/text/grammar. Errors are returned as values whose detail says what is wrong,
// where, and what to do.
#pragma once

#include <string>

#include "config/base/result.hpp"

namespace twill::models::grammar {

enum class errc {
  bad_json,      ///< a schema or a request is not JSON
  bad_schema,    ///< JSON that is not a valid JSON Schema (a keyword has an impossible value)
  unsupported,   ///< a valid schema, regular expression or grammar that twill does not enforce
  unsatisfiable, ///< no text satisfies the schema or the grammar
  bad_grammar,   ///< a grammar text or a regular expression does not parse
  too_large,     ///< the grammar would need more rules or states than the limits allow
  timed_out,     ///< compiling took more processor time than structured.compile_timeout
  out_of_memory, ///< compiling took more memory than structured.compile_memory
  abandoned,     ///< no caller waits for the grammar any more
  overdue, ///< the grammar was not compiled within structured.wait_timeout: the machine is busy
  helper_failed, ///< the helper process could not be started, or ended without an answer
  no_resources,  ///< no descriptor, process or memory was left to start the helper process
};

template <class T>
using result = twill::result<T, errc>;
using failure = twill::failure<errc>;

/// An exception for errors that are found deep in a recursion. It is thrown and caught only inside
/// models/text/grammar.
struct refusal {
  failure why;
};

[[noreturn]] inline void refuse(errc code, std::string detail) {
  throw refusal{failure{code, std::move(detail)}};
}

} // namespace twill::models::grammar
