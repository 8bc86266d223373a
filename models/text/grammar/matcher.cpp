#include "models/text/grammar/matcher.hpp"

#include <string>
#include <utility>

#include "config/base/assert.hpp"
#include "models/text/grammar/xgrammar_parts.hpp"

namespace twill::models::grammar {

struct matcher::state {
  compiled_grammar_ptr grammar;
  xgrammar::GrammarMatcher at;
};

matcher::matcher(compiled_grammar_ptr grammar) {
  auto at = xgrammar::GrammarMatcher(grammar->parts);
  state_ = std::make_unique<state>(state{std::move(grammar), std::move(at)});
}
matcher::matcher(std::unique_ptr<state> s) : state_(std::move(s)) {}
matcher::matcher(matcher&&) noexcept = default;
matcher& matcher::operator=(matcher&&) noexcept = default;
matcher::~matcher() = default;

bool matcher::fill_next_mask(std::span<std::int32_t> mask) {
  TWILL_ASSERT(mask.size() == mask_words(state_->grammar->tokens->size()),
               "a mask of the vocabulary's size");
  std::int64_t shape = static_cast<std::int64_t>(mask.size());
  std::int64_t stride = 1;
  DLTensor tensor{};
  tensor.data = mask.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 1;
  tensor.dtype = xgrammar::GetBitmaskDLType();
  tensor.shape = &shape;
  tensor.strides = &stride;
  return state_->at.FillNextTokenBitmask(&tensor);
}

bool matcher::accept(token_id token) {
  if (token < 0 || token >= state_->grammar->tokens->size()) return false;
  return state_->at.AcceptToken(token);
}

bool matcher::accept_text(std::string_view bytes) {
  return state_->at.AcceptString(std::string(bytes));
}

void matcher::rollback(int n) {
  state_->at.Rollback(n);
}

bool matcher::is_terminated() const {
  return state_->at.IsTerminated();
}

bool matcher::is_complete() const {
  return state_->at.IsCompleted();
}

matcher matcher::fork() const {
  return matcher(std::make_unique<state>(state{state_->grammar, state_->at.Fork()}));
}

} // namespace twill::models::grammar
