#include "actors/structured/grammar_service.hpp"

#include <utility>

namespace twill::actors {

grammar_service::grammar_service(std::shared_ptr<const models::model> model,
                                 std::vector<std::int32_t> markers,
                                 models::grammar::compile_limits limits)
    : model_(std::move(model)), markers_(std::move(markers)), limits_(std::move(limits)) {}

models::grammar::grammar_compiler& grammar_service::compiler(bool with_markers) {
  const bool marked = with_markers && !markers_.empty();
  const std::lock_guard lock(mutex_);
  auto& compiler = marked ? marked_ : plain_;
  if (!compiler) {
    // Masks have a bit for each logit.
    auto tokens = models::grammar::make_vocabulary(
        *model_->text, static_cast<std::int32_t>(model_->spec.vocab_size),
        marked ? std::span<const std::int32_t>(markers_) : std::span<const std::int32_t>());
    compiler = std::make_unique<models::grammar::grammar_compiler>(std::move(tokens), limits_);
  }
  return *compiler;
}

grammar_answer_ptr grammar_service::compile(const compile_grammar& order) {
  auto& with = compiler(order.with_markers);
  return std::make_shared<const grammar_answer>(grammar_answer{
      with.compile(order.spec, [&] { return stopped_ || (order.abandoned && *order.abandoned); }),
      with.tokens()});
}

grammar_answer_ptr grammar_service::cached(const compile_grammar& order) {
  models::grammar::grammar_compiler* with = nullptr;
  {
    const std::lock_guard lock(mutex_);
    with = (order.with_markers && !markers_.empty() ? marked_ : plain_).get();
  }
  if (with == nullptr) return nullptr;
  auto known = with->cached(order.spec);
  if (!known) return nullptr;
  return std::make_shared<const grammar_answer>(grammar_answer{std::move(*known), with->tokens()});
}

} // namespace twill::actors
