#include "models/text/jinja/evaluator.hpp"

#include <memory>

#include "models/text/jinja/filters.hpp"
#include "models/text/jinja/methods.hpp"
#include "models/text/jinja/operators.hpp"
#include "models/text/jinja/print.hpp"
#include "models/text/jinja/tests.hpp"

namespace twill::models::jinja {

const val* scope::find(std::string_view name) const {
  for (const scope* s = this; s != nullptr; s = s->parent)
    for (const auto& [key, value] : s->names)
      if (key == name) return &value;
  return nullptr;
}

void scope::set(std::string_view name, val value) {
  for (auto& [key, old] : names) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  names.emplace_back(std::string(name), std::move(value));
}

scope& evaluator::make_scope(scope* parent) {
  rt_.charge_elements(1);
  return scopes_.emplace_back(parent);
}

val evaluator::eval(const expr& e, scope& s) {
  const depth_guard guard(rt_);
  rt_.add_work();
  rt_.line = e.line;
  return eval_node(e, s);
}

val evaluator::eval_node(const expr& e, scope& s) {
  const auto item = [&](std::size_t i) { return eval(*e.items[i], s); };
  switch (e.kind) {
  case expr_kind::constant:
    return e.constant;
  case expr_kind::name:
    return eval_name(e, s);
  case expr_kind::list:
  case expr_kind::tuple:
    return eval_list(e, s);
  case expr_kind::dict:
    return eval_dict(e, s);
  case expr_kind::attribute:
    return get_attribute(rt_, item(0), e.name);
  case expr_kind::subscript: {
    const val object = item(0);
    return get_item(rt_, object, item(1));
  }
  case expr_kind::slice:
    return eval_slice(e, s);
  case expr_kind::call:
    return eval_call(e, s);
  case expr_kind::filter:
    return eval_filter(e, s, nullptr);
  case expr_kind::test: {
    const val input = item(0);
    return val(apply_test(e.name, input, eval_args(e, s)));
  }
  case expr_kind::conditional:
    return eval_conditional(e, s);
  case expr_kind::logical_and: {
    val left = item(0);
    return truthy(left) ? item(1) : left;
  }
  case expr_kind::logical_or: {
    val left = item(0);
    return truthy(left) ? left : item(1);
  }
  case expr_kind::logical_not:
    return val(!truthy(item(0)));
  case expr_kind::negative:
    return negate(rt_, item(0));
  case expr_kind::positive:
    return negate(rt_, negate(rt_, item(0)));
  case expr_kind::binary: {
    const val left = item(0);
    return apply_binary(rt_, e.name, left, item(1));
  }
  case expr_kind::concat:
    return eval_concat(e, s);
  case expr_kind::compare:
    return eval_compare(e, s);
  }
  return {};
}

val evaluator::eval_name(const expr& e, scope& s) {
  if (const val* found = s.find(e.name)) return *found;
  return runtime::undefined("'" + e.name + "' is undefined");
}

val evaluator::eval_list(const expr& e, scope& s) {
  std::vector<val> items;
  items.reserve(e.items.size());
  for (const auto& item : e.items)
    items.push_back(eval(*item, s));
  const auto kind = e.kind == expr_kind::tuple ? list_data::tuple : list_data::list;
  return val(rt_.make_list(kind, std::move(items)));
}

val evaluator::eval_dict(const expr& e, scope& s) {
  dict_data* d = rt_.make_dict();
  for (std::size_t i = 0; i + 1 < e.items.size(); i += 2) {
    val key = eval(*e.items[i], s);
    rt_.set(*d, std::move(key), eval(*e.items[i + 1], s));
  }
  return val(d);
}

val evaluator::eval_slice(const expr& e, scope& s) {
  const val object = eval(*e.items[0], s);
  std::optional<std::int64_t> bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (!e.items[i + 1]) continue;
    const val bound = eval(*e.items[i + 1], s);
    if (bound.is_none()) continue;
    bounds[i] = bound.whole();
    if (!bounds[i]) rt_.fail("slice indices must be integers or None, given " + type_name(bound));
  }
  return get_slice(rt_, object, bounds[0], bounds[1], bounds[2]);
}

call_args evaluator::eval_args(const expr& e, scope& s) {
  call_args args;
  args.positional.reserve(e.items.size() - 1);
  for (std::size_t i = 1; i < e.items.size(); ++i)
    args.positional.push_back(eval(*e.items[i], s));
  for (const auto& [name, value] : e.named)
    args.named.emplace_back(name, eval(*value, s));
  return args;
}

val evaluator::eval_call(const expr& e, scope& s) {
  const expr& callee = *e.items[0];
  if (callee.kind == expr_kind::attribute) { // for a method call no bound-method object is made
    const val self = eval(*callee.items[0], s);
    if (const method_fn method = find_method(self, callee.name)) {
      const call_args args = eval_args(e, s);
      rt_.line = e.line;
      return method(rt_, self, args);
    }
    const val function = get_attribute(rt_, self, callee.name);
    call_args args = eval_args(e, s);
    rt_.line = e.line;
    return call(function, args);
  }
  const val function = eval(callee, s);
  call_args args = eval_args(e, s);
  rt_.line = e.line;
  return call(function, args);
}

val evaluator::call(const val& callee, call_args& args) {
  require_defined(rt_, callee);
  object* o = callee.as_object();
  if (o == nullptr || !o->callable())
    rt_.fail("'" + type_name(callee) + "' object is not callable");
  const depth_guard guard(rt_);
  return o->call(rt_, args);
}

val evaluator::eval_filter(const expr& e, scope& s, const val* input) {
  // The innermost filter of a filter block is applied to the captured text.
  const val operand = !e.items[0]                             ? *input
                      : e.items[0]->kind == expr_kind::filter ? eval_filter(*e.items[0], s, input)
                                                              : eval(*e.items[0], s);
  const call_args args = eval_args(e, s);
  rt_.line = e.line;
  return apply_filter(e.name, operand, args);
}

val evaluator::apply_filter(std::string_view name, const val& input, const call_args& args) {
  const filter_fn filter = find_filter(name);
  if (filter == nullptr) rt_.fail("no filter named '" + std::string(name) + "'");
  rt_.add_work();
  const depth_guard guard(rt_);
  return filter(*this, input, args);
}

bool evaluator::apply_test(std::string_view name, const val& input, const call_args& args) {
  const test_fn test = find_test(name);
  if (test == nullptr) rt_.fail("no test named '" + std::string(name) + "'");
  rt_.add_work();
  return test(*this, input, args);
}

val evaluator::eval_concat(const expr& e, scope& s) {
  text out;
  for (const auto& item : e.items) {
    out.append(to_text(rt_, eval(*item, s)));
    rt_.charge_text(out.bytes.size());
  }
  return val(std::make_shared<const text>(std::move(out)));
}

val evaluator::eval_compare(const expr& e, scope& s) {
  val left = eval(*e.items[0], s);
  for (std::size_t i = 0; i < e.ops.size(); ++i) {
    const val right = eval(*e.items[i + 1], s);
    if (!apply_compare(rt_, e.ops[i], left, right)) return val(false);
    left = right;
  }
  return val(true);
}

val evaluator::eval_conditional(const expr& e, scope& s) {
  if (truthy(eval(*e.items[1], s))) return eval(*e.items[0], s);
  if (e.items[2]) return eval(*e.items[2], s);
  return runtime::undefined("the inline if-expression evaluated to false and has no else");
}

} // namespace twill::models::jinja
