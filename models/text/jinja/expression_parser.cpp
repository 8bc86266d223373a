#include "models/text/jinja/expression_parser.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string_view>

namespace twill::models::jinja {
namespace {

constexpr int max_nesting = 100; ///< most nested brackets and operators in the source
// The greatest height of the tree: a chain like a + b + c makes a high tree without nesting.
constexpr int max_height = 400;

} // namespace

class expression_parser::nesting {
public:
  explicit nesting(expression_parser& p) : p_(p) {
    if (++p_.depth_ > max_nesting) p_.t_.fail("expression nests too deep");
  }
  ~nesting() { --p_.depth_; }

private:
  expression_parser& p_;
};

void expression_parser::add(expr& parent, expr_ptr child) {
  if (child) parent.height = std::max(parent.height, child->height + 1);
  if (parent.height > max_height) t_.fail("expression is too long");
  parent.items.push_back(std::move(child));
}

template <class... Items>
expr_ptr expression_parser::make(expr_kind kind, int line, Items... items) {
  auto node = std::make_unique<expr>();
  node->kind = kind;
  node->line = line;
  (add(*node, std::move(items)), ...);
  return node;
}

expr_ptr expression_parser::binary_chain(expr_ptr (expression_parser::*operand)(), expr_kind kind,
                                         std::initializer_list<const char*> operators) {
  expr_ptr left = (this->*operand)();
  for (;;) {
    const auto op = std::find_if(operators.begin(), operators.end(),
                                 [&](const char* o) { return t_.current().is_op(o); });
    if (op == operators.end()) return left;
    const int line = t_.take().line;
    expr_ptr right = (this->*operand)();
    left = make(kind, line, std::move(left), std::move(right));
    left->name = *op;
  }
}

expr_ptr expression_parser::logical_chain(expr_ptr (expression_parser::*operand)(), expr_kind kind,
                                          const char* word) {
  expr_ptr left = (this->*operand)();
  while (t_.current().is_name(word)) {
    const int line = t_.take().line;
    expr_ptr right = (this->*operand)();
    left = make(kind, line, std::move(left), std::move(right));
  }
  return left;
}

expr_ptr expression_parser::parse_conditional() {
  const nesting guard(*this);
  expr_ptr node = parse_or();
  while (t_.current().is_name("if")) {
    const int line = t_.take().line;
    expr_ptr condition = parse_or();
    expr_ptr otherwise = t_.take_name("else") ? parse_conditional() : nullptr;
    node = make(expr_kind::conditional, line, std::move(node), std::move(condition),
                std::move(otherwise));
  }
  return node;
}

expr_ptr expression_parser::parse_or() {
  return logical_chain(&expression_parser::parse_and, expr_kind::logical_or, "or");
}

expr_ptr expression_parser::parse_and() {
  return logical_chain(&expression_parser::parse_not, expr_kind::logical_and, "and");
}

expr_ptr expression_parser::parse_not() {
  if (!t_.current().is_name("not")) return parse_compare();
  const nesting guard(*this);
  const int line = t_.take().line;
  return make(expr_kind::logical_not, line, parse_not());
}

expr_ptr expression_parser::parse_compare() {
  static constexpr std::initializer_list<const char*> operators = {"==", "!=", "<",
                                                                   "<=", ">",  ">="};
  expr_ptr first = parse_sum();
  const int line = first->line;
  expr_ptr node;
  for (;;) {
    std::string op;
    const token& now = t_.current();
    if (now.kind == token_kind::op &&
        std::find(operators.begin(), operators.end(), now.text) != operators.end())
      op = t_.take().text;
    else if (t_.take_name("in"))
      op = "in";
    else if (now.is_name("not") && t_.look().is_name("in"))
      op = "not in", t_.take(), t_.take();
    else
      break;
    if (!node) node = make(expr_kind::compare, line, std::move(first));
    node->ops.push_back(std::move(op));
    add(*node, parse_sum());
  }
  return node ? std::move(node) : std::move(first);
}

expr_ptr expression_parser::parse_sum() {
  return binary_chain(&expression_parser::parse_concat, expr_kind::binary, {"+", "-"});
}

expr_ptr expression_parser::parse_concat() {
  expr_ptr first = parse_product();
  if (!t_.current().is_op("~")) return first;
  const int line = first->line;
  expr_ptr node = make(expr_kind::concat, line, std::move(first));
  while (t_.take_op("~"))
    add(*node, parse_product());
  return node;
}

expr_ptr expression_parser::parse_product() {
  return binary_chain(&expression_parser::parse_power, expr_kind::binary, {"*", "/", "//", "%"});
}

expr_ptr expression_parser::parse_power() {
  expr_ptr left = parse_unary();
  while (t_.current().is_op("**")) {
    const int line = t_.take().line;
    left = make(expr_kind::binary, line, std::move(left), parse_unary());
    left->name = "**";
  }
  return left;
}

expr_ptr expression_parser::parse_unary(bool with_filter) {
  const nesting guard(*this);
  const token& now = t_.current();
  expr_ptr node;
  if (now.is_op("-") || now.is_op("+")) {
    const token sign = t_.take();
    node = make(sign.text == "-" ? expr_kind::negative : expr_kind::positive, sign.line,
                parse_unary(false));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filter ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

expr_ptr expression_parser::parse_primary() {
  const token& now = t_.current();
  switch (now.kind) {
  case token_kind::name:
    return parse_name();
  case token_kind::string:
    return parse_string();
  case token_kind::integer:
  case token_kind::floating:
    return parse_number();
  default:
    break;
  }
  if (t_.take_op("(")) {
    expr_ptr node = parse_tuple(true, true);
    t_.expect_op(")");
    return node;
  }
  if (now.is_op("[")) return parse_list();
  if (now.is_op("{")) return parse_dict();
  t_.fail("unexpected " + t_.describe());
}

expr_ptr expression_parser::parse_name() {
  token name = t_.take();
  expr_ptr node = make(expr_kind::constant, name.line);
  if (name.text == "true" || name.text == "True")
    node->constant = val(true);
  else if (name.text == "false" || name.text == "False")
    node->constant = val(false);
  else if (name.text == "none" || name.text == "None")
    node->constant = val(none_t{});
  else
    node->kind = expr_kind::name, node->name = std::move(name.text);
  seen.varargs = seen.varargs || node->name == "varargs";
  seen.kwargs = seen.kwargs || node->name == "kwargs";
  seen.caller = seen.caller || node->name == "caller";
  return node;
}

expr_ptr expression_parser::parse_string() {
  expr_ptr node = make(expr_kind::constant, t_.line());
  std::string joined;
  while (t_.current().kind == token_kind::string)
    joined += t_.take().text;
  node->constant = val(std::make_shared<const text>(text(std::move(joined))));
  return node;
}

expr_ptr expression_parser::parse_number() {
  const token number = t_.take();
  expr_ptr node = make(expr_kind::constant, number.line);
  if (number.kind == token_kind::floating) {
    node->constant = val(std::strtod(number.text.c_str(), nullptr));
    return node;
  }
  const std::string_view digits = number.text;
  node->constant =
      whole_val(digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1)));
  return node;
}

bool expression_parser::at_tuple_end() const {
  const token& now = t_.current();
  return now.kind == token_kind::variable_end || now.kind == token_kind::block_end ||
         now.is_op(")") || now.is_name("recursive");
}

expr_ptr expression_parser::parse_tuple(bool with_conditional, bool in_parentheses) {
  const int line = t_.line();
  std::vector<expr_ptr> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) {
      if (!t_.take_op(",")) break;
      is_tuple = true;
    }
    if (at_tuple_end()) break;
    items.push_back(with_conditional ? parse_expression() : parse_or());
  }
  if (!is_tuple && !items.empty()) return std::move(items.front());
  if (items.empty() && !in_parentheses) t_.fail("expected an expression, got " + t_.describe());
  expr_ptr node = make(expr_kind::tuple, line);
  for (auto& item : items)
    add(*node, std::move(item));
  return node;
}

expr_ptr expression_parser::parse_list() {
  expr_ptr node = make(expr_kind::list, t_.line());
  t_.expect_op("[");
  while (!t_.current().is_op("]")) {
    if (!node->items.empty()) t_.expect_op(",");
    if (t_.current().is_op("]")) break;
    add(*node, parse_expression());
  }
  t_.expect_op("]");
  return node;
}

expr_ptr expression_parser::parse_dict() {
  expr_ptr node = make(expr_kind::dict, t_.line());
  t_.expect_op("{");
  while (!t_.current().is_op("}")) {
    if (!node->items.empty()) t_.expect_op(",");
    if (t_.current().is_op("}")) break;
    add(*node, parse_expression());
    t_.expect_op(":");
    add(*node, parse_expression());
  }
  t_.expect_op("}");
  return node;
}

expr_ptr expression_parser::parse_postfix(expr_ptr node) {
  for (;;) {
    const token& now = t_.current();
    if (now.is_op("."))
      node = parse_attribute(std::move(node));
    else if (now.is_op("["))
      node = parse_subscript(std::move(node));
    else if (now.is_op("(")) {
      const int line = now.line;
      node = make(expr_kind::call, line, std::move(node));
      parse_call_args(*node);
    } else
      return node;
  }
}

expr_ptr expression_parser::parse_attribute(expr_ptr node) {
  const int line = t_.take().line;
  if (t_.current().kind == token_kind::integer)
    return make(expr_kind::subscript, line, std::move(node), parse_number());
  node = make(expr_kind::attribute, line, std::move(node));
  node->name = t_.take_any_name();
  return node;
}

expr_ptr expression_parser::parse_subscript(expr_ptr node) {
  const int line = t_.take().line;
  expr_ptr index = t_.current().is_op(":") ? nullptr : parse_expression();
  if (t_.current().is_op(":")) return parse_slice(std::move(node), std::move(index), line);
  if (t_.current().is_op(",")) {
    expr_ptr keys = make(expr_kind::tuple, line, std::move(index));
    while (t_.take_op(",") && !t_.current().is_op("]"))
      add(*keys, parse_expression());
    index = std::move(keys);
  }
  t_.expect_op("]");
  return make(expr_kind::subscript, line, std::move(node), std::move(index));
}

expr_ptr expression_parser::parse_slice(expr_ptr node, expr_ptr start, int line) {
  const auto bound = [this]() -> expr_ptr {
    if (t_.current().is_op(":") || t_.current().is_op("]")) return nullptr;
    return parse_expression();
  };
  t_.expect_op(":");
  expr_ptr stop = bound();
  expr_ptr step = t_.take_op(":") ? bound() : nullptr;
  t_.expect_op("]");
  return make(expr_kind::slice, line, std::move(node), std::move(start), std::move(stop),
              std::move(step));
}

void expression_parser::parse_call_args(expr& call) {
  t_.expect_op("(");
  bool first = true;
  while (!t_.current().is_op(")")) {
    if (!first) t_.expect_op(",");
    first = false;
    if (t_.current().is_op(")")) break;
    if (t_.current().is_op("*") || t_.current().is_op("**"))
      t_.fail("dynamic call arguments (* and **) are not supported");
    if (t_.current().kind == token_kind::name && t_.look().is_op("=")) {
      std::string name = t_.take().text;
      t_.take();
      expr_ptr argument = parse_expression();
      call.height = std::max(call.height, argument->height + 1);
      call.named.emplace_back(std::move(name), std::move(argument));
    } else {
      if (!call.named.empty()) t_.fail("a positional argument follows a named one");
      add(call, parse_expression());
    }
  }
  t_.expect_op(")");
}

expr_ptr expression_parser::parse_filters_and_tests(expr_ptr node) {
  for (;;) {
    const token& now = t_.current();
    if (now.is_op("|"))
      t_.take(), node = parse_filter(std::move(node));
    else if (now.is_name("is"))
      node = parse_test(std::move(node));
    else if (now.is_op("(")) {
      const int line = now.line;
      node = make(expr_kind::call, line, std::move(node));
      parse_call_args(*node);
    } else
      return node;
  }
}

expr_ptr expression_parser::parse_filter(expr_ptr operand) {
  expr_ptr node = make(expr_kind::filter, t_.line(), std::move(operand));
  node->name = t_.take_any_name();
  if (t_.current().is_op("(")) parse_call_args(*node);
  return node;
}

expr_ptr expression_parser::parse_filter_chain() {
  expr_ptr node = parse_filter(nullptr);
  while (t_.take_op("|"))
    node = parse_filter(std::move(node));
  return node;
}

expr_ptr expression_parser::parse_test(expr_ptr operand) {
  const int line = t_.take().line;
  const bool negated = t_.take_name("not");
  expr_ptr node = make(expr_kind::test, line, std::move(operand));
  node->name = t_.take_any_name();
  const token& now = t_.current();
  const bool is_word = now.kind == token_kind::name;
  if (now.is_op("(")) {
    parse_call_args(*node);
  } else if ((is_word && now.text != "else" && now.text != "or" && now.text != "and") ||
             now.kind == token_kind::string || now.kind == token_kind::integer ||
             now.kind == token_kind::floating || now.is_op("[") || now.is_op("{")) {
    if (now.is_name("is")) t_.fail("tests cannot be chained with 'is'");
    add(*node, parse_postfix(parse_primary()));
  }
  return negated ? make(expr_kind::logical_not, line, std::move(node)) : std::move(node);
}

} // namespace twill::models::jinja
