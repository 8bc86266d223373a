// token_stream: the parser's cursor over tokens.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/jinja/lexer.hpp"
#include "models/text/jinja/runtime.hpp"

namespace twill::models::jinja {

class token_stream {
public:
  explicit token_stream(std::vector<token> tokens) : tokens_(std::move(tokens)) {}

  const token& current() const { return tokens_[at_]; }
  const token& look() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  int line() const { return current().line; }

  token take() {
    token t = current();
    if (at_ + 1 < tokens_.size()) ++at_;
    return t;
  }
  bool take_op(std::string_view op) {
    if (!current().is_op(op)) return false;
    take();
    return true;
  }
  bool take_name(std::string_view name) {
    if (!current().is_name(name)) return false;
    take();
    return true;
  }
  void expect_op(std::string_view op) {
    if (!take_op(op)) fail("expected '" + std::string(op) + "', got " + describe());
  }
  void expect_name(std::string_view name) {
    if (!take_name(name)) fail("expected '" + std::string(name) + "', got " + describe());
  }
  void expect(token_kind kind, const char* what) {
    if (current().kind != kind) fail(std::string("expected ") + what + ", got " + describe());
    take();
  }
  std::string take_any_name() {
    if (current().kind != token_kind::name) fail("expected a name, got " + describe());
    return take().text;
  }

  std::string describe() const {
    switch (current().kind) {
    case token_kind::data:
      return "template text";
    case token_kind::block_begin:
      return "'{%'";
    case token_kind::block_end:
      return "'%}'";
    case token_kind::variable_begin:
      return "'{{'";
    case token_kind::variable_end:
      return "'}}'";
    case token_kind::end:
      return "the end of the template";
    default:
      return "'" + current().text + "'";
    }
  }

  [[noreturn]] void fail(std::string message) const {
    throw template_error{line(), std::move(message)};
  }

private:
  std::vector<token> tokens_;
  std::size_t at_ = 0;
};

} // namespace twill::models::jinja
