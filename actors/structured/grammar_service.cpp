#include "actors/structured/grammar_service.hpp"

#include <utility>

namespace twill::actors {

grammar_service::grammar_service(std::shared_ptr<const models::model> model,
                                 models::grammar::compile_limits limits)
    : model_(std::move(model)), limits_(std::move(limits)) {}

models::grammar::grammar_compiler& grammar_service::compiler(const marker_ids& markers) {
  const std::lock_guard lock(mutex_);
  auto& compiler = compilers_[markers];
  if (!compiler) {
    // Masks have a bit for each logit.
    auto tokens = models::grammar::make_vocabulary(
        *model_->text, static_cast<std::int32_t>(model_->spec.vocab_size), markers);
    compiler = std::make_unique<models::grammar::grammar_compiler>(std::move(tokens), limits_);
  }
  return *compiler;
}

grammar_answer_ptr grammar_service::compile(const compile_grammar& order) {
  auto& with = compiler(order.markers);
  return std::make_shared<const grammar_answer>(grammar_answer{
      with.compile(order.spec, [&] { return stopped_ || (order.abandoned && *order.abandoned); }),
      with.tokens()});
}

grammar_answer_ptr grammar_service::cached(const compile_grammar& order) {
  models::grammar::grammar_compiler* with = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (const auto made = compilers_.find(order.markers); made != compilers_.end())
      with = made->second.get();
  }
  if (with == nullptr) return nullptr;
  auto known = with->cached(order.spec);
  if (!known) return nullptr;
  return std::make_shared<const grammar_answer>(grammar_answer{std::move(*known), with->tokens()});
}

} // namespace twill::actors
