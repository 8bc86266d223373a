#include "models/text/grammar/matcher.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/base/assert.hpp"
#include "models/text/grammar/unique_keys.hpp"
#include "models/text/grammar/xgrammar_parts.hpp"

namespace twill::models::grammar {

namespace {

/// The JSON text of the answer so far, with its keys. Used only if the answer is JSON.
struct json_answer {
  unique_keys keys;
  std::string text;
  std::vector<std::size_t> sizes; ///< size of the text before each step

  void push(std::string_view bytes) {
    sizes.push_back(text.size());
    text += bytes;
    keys.push(bytes);
  }
  void rollback(int n) {
    if (n <= 0) return;
    const auto first = sizes.size() - static_cast<std::size_t>(n);
    text.resize(sizes[first]);
    sizes.resize(first);
    keys = {};
    keys.push(text);
  }
};

} // namespace

struct matcher::state {
  compiled_grammar_ptr grammar;
  xgrammar::GrammarMatcher at;
  std::optional<json_answer> json;
};

matcher::matcher(compiled_grammar_ptr grammar) {
  auto at = xgrammar::GrammarMatcher(grammar->parts);
  const bool is_json = grammar->is_json;
  state_ = std::make_unique<state>(state{std::move(grammar), std::move(at), std::nullopt});
  if (is_json) state_->json.emplace();
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
  const bool is_narrow = state_->at.FillNextTokenBitmask(&tensor);
  if (!state_->json) return is_narrow;
  auto& at = state_->at;
  const text_probe probe{[&at](const std::string& text) { return at.AcceptString(text); },
                         [&at] { at.Rollback(1); }};
  const auto& tokens = *state_->grammar->tokens;
  return state_->json->keys.forbid(mask, tokens.bytes, *tokens.keys, probe) || is_narrow;
}

bool matcher::accept(token_id token) {
  if (token < 0 || token >= state_->grammar->tokens->size()) return false;
  if (!state_->at.AcceptToken(token)) return false;
  if (state_->json)
    state_->json->push(state_->grammar->tokens->bytes[static_cast<std::size_t>(token)]);
  return true;
}

bool matcher::accept_text(std::string_view bytes) {
  if (!state_->at.AcceptString(std::string(bytes))) return false;
  if (state_->json) state_->json->push(bytes);
  return true;
}

void matcher::rollback(int n) {
  state_->at.Rollback(n);
  if (state_->json) state_->json->rollback(n);
}

bool matcher::is_terminated() const {
  return state_->at.IsTerminated();
}

bool matcher::is_complete() const {
  return state_->at.IsCompleted();
}

matcher matcher::fork() const {
  return matcher(std::make_unique<state>(state{state_->grammar, state_->at.Fork(), state_->json}));
}

} // namespace twill::models::grammar
