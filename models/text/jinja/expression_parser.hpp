// expression_parser: the expression half of the grammar.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "models/text/jinja/ast.hpp"
#include "models/text/jinja/token_stream.hpp"

namespace twill::models::jinja {

/// Which of the names varargs, kwargs and caller occur in the body of a macro. A macro that uses
/// one of them accepts arguments beyond its declared parameters.
struct macro_names {
  bool varargs = false, kwargs = false, caller = false;
};

class expression_parser {
public:
  explicit expression_parser(token_stream& tokens) : t_(tokens) {}

  expr_ptr parse_expression() { return parse_conditional(); }
  /// Parses `a, b, ...` as a tuple, or one expression if no comma follows it. Items may be
  /// conditional expressions if `with_conditional`, and may be absent if `in_parentheses`.
  expr_ptr parse_tuple(bool with_conditional = true, bool in_parentheses = false);
  /// Parses one operand with its postfixes and filters.
  expr_ptr parse_unary(bool with_filter = true);
  /// `name(args) | name ...`; the innermost filter has no operand.
  expr_ptr parse_filter_chain();

  macro_names seen; ///< names that occurred since the caller last reset it

private:
  class nesting;

  expr_ptr parse_conditional();
  expr_ptr parse_or();
  expr_ptr parse_and();
  expr_ptr parse_not();
  expr_ptr parse_compare();
  expr_ptr parse_sum();
  expr_ptr parse_concat();
  expr_ptr parse_product();
  expr_ptr parse_power();
  expr_ptr parse_primary();
  expr_ptr parse_name();
  expr_ptr parse_string();
  expr_ptr parse_number();
  expr_ptr parse_list();
  expr_ptr parse_dict();
  expr_ptr parse_postfix(expr_ptr node);
  expr_ptr parse_attribute(expr_ptr node);
  expr_ptr parse_subscript(expr_ptr node);
  expr_ptr parse_slice(expr_ptr node, expr_ptr start, int line);
  expr_ptr parse_filters_and_tests(expr_ptr node);
  expr_ptr parse_filter(expr_ptr operand);
  expr_ptr parse_test(expr_ptr operand);
  void parse_call_args(expr& call);
  bool at_tuple_end() const;

  template <class... Items>
  expr_ptr make(expr_kind kind, int line, Items... items);
  void add(expr& parent, expr_ptr child);
  expr_ptr binary_chain(expr_ptr (expression_parser::*operand)(), expr_kind kind,
                        std::initializer_list<const char*> operators);
  /// Operands with `word`, which is `and` or `or`, between them; the leftmost pair binds first.
  expr_ptr logical_chain(expr_ptr (expression_parser::*operand)(), expr_kind kind,
                         const char* word);

  token_stream& t_;
  int depth_ = 0;
};

} // namespace twill::models::jinja
