// grammar_service: compiles what outputs of one model must look like, and keeps what was compiled.
//
// Any thread may call it. compile() blocks until the grammar is there or overdue, and is for the
// thread of the grammar compiler; cached() does not wait. Vocabularies are made with the first
// grammar.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/messages.hpp"
#include "actors/structured/grammar_answer.hpp"
#include "models/model.hpp"
#include "models/text/grammar/compile.hpp"

namespace twill::actors {

class grammar_service {
public:
  /// `markers`: control tokens that count as their text where a grammar asks for it.
  grammar_service(std::shared_ptr<const models::model> model, std::vector<std::int32_t> markers,
                  models::grammar::compile_limits limits);

  /// Ends early once the order is abandoned or the service has been stopped.
  grammar_answer_ptr compile(const compile_grammar& order);
  /// What compile() would answer without compiling; null when it would have to.
  grammar_answer_ptr cached(const compile_grammar& order);
  /// Ends compile(), also one under way.
  void stop() { stopped_ = true; }

private:
  models::grammar::grammar_compiler& compiler(bool with_markers);

  const std::shared_ptr<const models::model> model_;
  const std::vector<std::int32_t> markers_;
  const models::grammar::compile_limits limits_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_; ///< of the compilers' making
  std::unique_ptr<models::grammar::grammar_compiler> plain_, marked_;
};

} // namespace twill::actors
