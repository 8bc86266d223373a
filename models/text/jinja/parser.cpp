#include "models/text/jinja/parser.hpp"

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "models/text/jinja/expression_parser.hpp"
#include "models/text/jinja/lexer.hpp"
#include "models/text/jinja/token_stream.hpp"

namespace twill::models::jinja {
namespace {

constexpr int max_block_nesting = 64;

class template_parser {
public:
  explicit template_parser(std::string_view source)
      : tokens_(tokenize(source)), expressions_(tokens_) {}

  body parse() {
    body out = parse_body({});
    if (tokens_.current().kind != token_kind::end) tokens_.fail("unexpected " + tokens_.describe());
    return out;
  }

private:
  using words = std::initializer_list<const char*>;

  stmt_ptr make(stmt_kind kind) const {
    auto node = std::make_unique<stmt>();
    node->kind = kind;
    node->line = tokens_.line();
    return node;
  }

  void end_tag() { tokens_.expect(token_kind::block_end, "'%}'"); }

  /// Parses statements up to a tag whose first word is in `ends`. Afterwards that word is the
  /// current token.
  body parse_body(words ends) {
    if (++nesting_ > max_block_nesting) tokens_.fail("blocks nest too deep");
    body out;
    for (;;) {
      const token& now = tokens_.current();
      if (now.kind == token_kind::end) {
        if (ends.size() > 0) tokens_.fail(std::string("missing '") + *ends.begin() + "'");
        break;
      }
      if (now.kind == token_kind::data) {
        stmt_ptr node = make(stmt_kind::data);
        node->data = std::make_shared<const text>(text(tokens_.take().text));
        out.push_back(std::move(node));
      } else if (now.kind == token_kind::variable_begin) {
        out.push_back(parse_print());
      } else {
        tokens_.expect(token_kind::block_begin, "'{%'");
        bool ended = false;
        for (const char* end : ends)
          ended = ended || tokens_.current().is_name(end);
        if (ended) break;
        out.push_back(parse_statement());
        end_tag();
      }
    }
    --nesting_;
    return out;
  }

  stmt_ptr parse_print() {
    tokens_.take();
    stmt_ptr node = make(stmt_kind::print);
    node->value = expressions_.parse_tuple();
    tokens_.expect(token_kind::variable_end, "'}}'");
    return node;
  }

  /// Parses one statement. Afterwards the current token is the one after the words of its last tag.
  stmt_ptr parse_statement() {
    const std::string word = tokens_.take_any_name();
    if (word == "if") return parse_if();
    if (word == "for") return parse_for();
    if (word == "set") return parse_set();
    if (word == "macro") return parse_macro();
    if (word == "call") return parse_call();
    if (word == "filter") return parse_filter();
    if (word == "with") return parse_with();
    if (word == "generation") return parse_generation();
    if (word == "break" || word == "continue") {
      if (loops_ == 0) tokens_.fail("'" + word + "' outside a loop");
      return make(word == "break" ? stmt_kind::leave_loop : stmt_kind::continue_loop);
    }
    tokens_.fail("unknown tag '" + word + "'");
  }

  void parse_rest(stmt& node, const char* end) {
    end_tag();
    node.bodies.push_back(parse_body({end}));
    tokens_.take();
  }

  stmt_ptr parse_if() {
    stmt_ptr node = make(stmt_kind::branch);
    for (;;) {
      node->tests.push_back(expressions_.parse_tuple(false));
      end_tag();
      node->bodies.push_back(parse_body({"endif", "elif", "else"}));
      if (tokens_.take_name("elif")) continue;
      if (tokens_.take_name("else"))
        parse_rest(*node, "endif");
      else
        tokens_.take();
      return node;
    }
  }

  stmt_ptr parse_for() {
    stmt_ptr node = make(stmt_kind::loop);
    node->to = parse_target(false);
    tokens_.expect_name("in");
    node->value = expressions_.parse_tuple(false);
    if (tokens_.take_name("if")) node->tests.push_back(expressions_.parse_expression());
    node->flag = tokens_.take_name("recursive");
    end_tag();
    const bool outer_macro = std::exchange(saw_macro_, false);
    ++loops_;
    node->bodies.push_back(parse_body({"endfor", "else"}));
    --loops_;
    node->keeps_scope = saw_macro_;
    saw_macro_ = saw_macro_ || outer_macro;
    if (tokens_.take_name("else"))
      parse_rest(*node, "endfor");
    else
      tokens_.take();
    return node;
  }

  target parse_one_target(bool with_attribute) {
    target out;
    if (tokens_.take_op("(")) {
      out = parse_target(with_attribute);
      tokens_.expect_op(")");
      return out;
    }
    out.name = tokens_.take_any_name();
    for (const char* word : {"true", "false", "none", "True", "False", "None"})
      if (out.name == word) tokens_.fail("cannot assign to " + out.name);
    if (with_attribute && tokens_.take_op(".")) out.attribute = tokens_.take_any_name();
    return out;
  }

  target parse_target(bool with_attribute) {
    if (++nesting_ > max_block_nesting) tokens_.fail("assignment target nests too deep");
    target first = parse_one_target(with_attribute);
    if (tokens_.current().is_op(",")) {
      target all;
      all.is_tuple = true;
      all.items.push_back(std::move(first));
      while (tokens_.take_op(",")) {
        const token& now = tokens_.current();
        if (now.kind != token_kind::name && !now.is_op("(")) break; // a comma may end a tuple
        if (now.is_name("in")) break;
        all.items.push_back(parse_one_target(with_attribute));
      }
      first = std::move(all);
    }
    --nesting_;
    return first;
  }

  stmt_ptr parse_set() {
    stmt_ptr node = make(stmt_kind::assign);
    node->to = parse_target(true);
    if (tokens_.take_op("=")) {
      node->value = expressions_.parse_tuple();
      return node;
    }
    node->kind = stmt_kind::assign_block;
    if (tokens_.take_op("|")) node->value = expressions_.parse_filter_chain();
    parse_rest(*node, "endset");
    return node;
  }

  void parse_parameters(stmt& node) {
    tokens_.expect_op("(");
    while (!tokens_.current().is_op(")")) {
      if (!node.parameters.empty()) tokens_.expect_op(",");
      if (tokens_.current().is_op(")")) break;
      parameter p{tokens_.take_any_name(), nullptr};
      if (tokens_.take_op("="))
        p.value = expressions_.parse_expression();
      else if (!node.parameters.empty() && node.parameters.back().value)
        tokens_.fail("a parameter without default follows one with a default");
      node.parameters.push_back(std::move(p));
    }
    tokens_.expect_op(")");
  }

  /// Parses the body of a macro. In that body, break and continue do not affect loops around the
  /// macro.
  void parse_macro_body(stmt& node, const char* end) {
    const int outer_loops = std::exchange(loops_, 0);
    const macro_names outer_seen = std::exchange(expressions_.seen, {});
    parse_rest(node, end);
    node.takes_varargs = expressions_.seen.varargs;
    node.takes_kwargs = expressions_.seen.kwargs;
    node.takes_caller = expressions_.seen.caller;
    expressions_.seen = outer_seen;
    loops_ = outer_loops;
    saw_macro_ = true;
  }

  stmt_ptr parse_macro() {
    stmt_ptr node = make(stmt_kind::macro);
    node->name = tokens_.take_any_name();
    parse_parameters(*node);
    parse_macro_body(*node, "endmacro");
    return node;
  }

  stmt_ptr parse_call() {
    stmt_ptr node = make(stmt_kind::call_block);
    if (tokens_.current().is_op("(")) parse_parameters(*node);
    node->value = expressions_.parse_expression();
    if (node->value->kind != expr_kind::call) tokens_.fail("expected a call");
    parse_macro_body(*node, "endcall");
    return node;
  }

  stmt_ptr parse_filter() {
    stmt_ptr node = make(stmt_kind::filter_block);
    node->value = expressions_.parse_filter_chain();
    parse_rest(*node, "endfilter");
    return node;
  }

  stmt_ptr parse_with() {
    stmt_ptr node = make(stmt_kind::with);
    while (tokens_.current().kind != token_kind::block_end) {
      if (!node->parameters.empty()) tokens_.expect_op(",");
      parameter p{tokens_.take_any_name(), nullptr};
      tokens_.expect_op("=");
      p.value = expressions_.parse_expression();
      node->parameters.push_back(std::move(p));
    }
    parse_rest(*node, "endwith");
    return node;
  }

  /// Parses a generation tag, which marks the assistant's text for training. Rendering ignores the
  /// tag.
  stmt_ptr parse_generation() {
    stmt_ptr node = make(stmt_kind::scoped);
    parse_rest(*node, "endgeneration");
    return node;
  }

  token_stream tokens_;
  expression_parser expressions_;
  int nesting_ = 0;
  int loops_ = 0;
  bool saw_macro_ = false;
};

} // namespace

body parse_template(std::string_view source) {
  return template_parser(source).parse();
}

} // namespace twill::models::jinja
