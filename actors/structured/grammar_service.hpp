// grammar_service: compiles the grammars for outputs of one model, and caches them.
//
// Any thread may call. compile() blocks until the grammar is compiled or its time is over, and is
// meant for the grammar compiler's thread; cached() does not block. A vocabulary is built with the
// first grammar that needs it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
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
  grammar_service(std::shared_ptr<const models::model> model,
                  models::grammar::compile_limits limits);

  /// Ends early once the order is abandoned or the service has been stopped.
  grammar_answer_ptr compile(const compile_grammar& order);
  /// Returns what compile() would answer if no compilation is needed; null otherwise.
  grammar_answer_ptr cached(const compile_grammar& order);
  /// Ends compile(), also one under way.
  void stop() { stopped_ = true; }

private:
  using marker_ids = std::vector<std::int32_t>;
  models::grammar::grammar_compiler& compiler(const marker_ids& markers);

  const std::shared_ptr<const models::model> model_;
  const models::grammar::compile_limits limits_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_; ///< guards the creation of compilers
  /// One compiler for each list of control tokens whose text a grammar may require (such as the
  /// tokens that mark tool calls). Each of the model's chat templates has its own list.
  std::map<marker_ids, std::unique_ptr<models::grammar::grammar_compiler>> compilers_;
};

} // namespace twill::actors
