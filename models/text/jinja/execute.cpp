#include <memory>
#include <string>
#include <utility>

#include "models/text/jinja/evaluator.hpp"
#include "models/text/jinja/globals.hpp"
#include "models/text/jinja/loop_object.hpp"
#include "models/text/jinja/operators.hpp"
#include "models/text/jinja/print.hpp"

namespace twill::models::jinja {
namespace {

/// A macro as a value: one of `{% macro %}`, or the body of a call block, which is named `caller`.
struct macro_object final : object {
  macro_object(evaluator& e, const stmt& m, scope& s) : ev(e), macro(m), closure(s) {}
  std::string type_name() const override { return "Macro"; }
  bool callable() const override { return true; }
  val call(runtime&, call_args& args) override { return ev.call_macro(macro, closure, args); }
  std::optional<val> attribute(std::string_view name) const override {
    if (name == "name") return ev.rt().make_text(macro.name);
    return std::nullopt;
  }

  evaluator& ev;
  const stmt& macro;
  scope& closure;
};

} // namespace

text evaluator::run(const body& statements, scope& root) {
  return capture(statements, root);
}

void evaluator::watch(const val& list) {
  const list_data* items = list.as_list();
  if (items == nullptr) return;
  for (std::size_t i = 0; i < items->items.size(); ++i)
    if (const dict_data* item = items->items[i].as_dict())
      watched_.emplace(item, static_cast<int>(i));
}

text evaluator::capture(const body& statements, scope& s, flow* left_by) {
  text out;
  text* outer = std::exchange(out_, &out);
  // An exception ends the render, so `out_` need not be restored after one.
  const flow how = exec(statements, s);
  out_ = outer;
  if (left_by != nullptr) *left_by = how;
  return out;
}

void evaluator::write(const text& t) {
  rt_.charge_text(t.bytes.size());
  out_->append(t);
  if (out_->bytes.size() > (16u << 20)) rt_.charge_text(out_->bytes.size());
}

evaluator::flow evaluator::exec(const body& statements, scope& s) {
  for (const auto& statement : statements)
    if (const flow how = exec_one(*statement, s); how != flow::next) return how;
  return flow::next;
}

evaluator::flow evaluator::exec_one(const stmt& node, scope& s) {
  const depth_guard guard(rt_);
  rt_.add_work();
  rt_.line = node.line;
  switch (node.kind) {
  case stmt_kind::data:
    write(*node.data);
    break;
  case stmt_kind::print:
    write(to_text(rt_, eval(*node.value, s)));
    break;
  case stmt_kind::branch:
    return exec_branch(node, s);
  case stmt_kind::loop:
    return exec_loop(node, s, eval(*node.value, s), 0);
  case stmt_kind::assign:
    assign(node.to, s, eval(*node.value, s));
    break;
  case stmt_kind::assign_block:
    exec_assign_block(node, s);
    break;
  case stmt_kind::filter_block: {
    flow how = flow::next;
    const val body(std::make_shared<const text>(capture(node.bodies[0], make_scope(&s), &how)));
    write(to_text(rt_, eval_filter(*node.value, s, &body)));
    return how;
  }
  case stmt_kind::with:
    return exec_with(node, s);
  case stmt_kind::scoped:
    return exec(node.bodies[0], make_scope(&s));
  case stmt_kind::macro:
    s.set(node.name, val(rt_.make_object<macro_object>(*this, node, s)));
    break;
  case stmt_kind::call_block:
    exec_call_block(node, s);
    break;
  case stmt_kind::leave_loop:
    return flow::leave_loop;
  case stmt_kind::continue_loop:
    return flow::continue_loop;
  }
  return flow::next;
}

evaluator::flow evaluator::exec_branch(const stmt& node, scope& s) {
  for (std::size_t i = 0; i < node.tests.size(); ++i)
    if (truthy(eval(*node.tests[i], s))) return exec(node.bodies[i], s);
  return node.bodies.size() > node.tests.size() ? exec(node.bodies.back(), s) : flow::next;
}

std::vector<val> evaluator::loop_items(const stmt& node, scope& s, const val& items) {
  std::vector<val> all = rt_.iterate(items);
  if (node.tests.empty()) return all;
  std::vector<val> kept;
  scope inner(&s);
  for (val& item : all) {
    inner.names.clear();
    assign(node.to, inner, item);
    if (truthy(eval(*node.tests[0], inner))) kept.push_back(std::move(item));
  }
  return kept;
}

evaluator::flow evaluator::exec_loop(const stmt& node, scope& s, const val& items, int depth) {
  auto* loop = rt_.make_object<loop_object>(*this, node, s, loop_items(node, s, items), depth);
  const val loop_value(loop);
  bool has_completed = false; // true after an iteration has reached the end of the body
  scope reused(&s);
  // After an error, which ends the render, watched_item_ must keep the item that failed.
  const int outer_item = watched_item_;
  for (std::size_t i = 0; i < loop->size(); ++i) {
    rt_.add_work();
    rt_.line = node.line;
    loop->move_to(i);
    if (const auto found = watched_.find(loop->item().as_dict()); found != watched_.end())
      watched_item_ = found->second;
    scope& inner = node.keeps_scope ? make_scope(&s) : reused;
    inner.names.clear();
    inner.set("loop", loop_value);
    assign(node.to, inner, loop->item());
    const flow how = exec(node.bodies[0], inner);
    if (how == flow::leave_loop) break;
    has_completed = has_completed || how == flow::next;
  }
  watched_item_ = outer_item;
  loop->end();
  if (has_completed || node.bodies.size() == 1) return flow::next;
  // As in Jinja, `else` also follows a loop whose every iteration ended in `break` or `continue`.
  scope inner(&s);
  return exec(node.bodies[1], node.keeps_scope ? make_scope(&s) : inner);
}

val evaluator::call_loop(const stmt& loop, scope& outer, const val& items, int depth) {
  text out;
  text* before = std::exchange(out_, &out);
  exec_loop(loop, outer, items, depth);
  out_ = before;
  return rt_.make_text(std::move(out));
}

void evaluator::assign(const target& to, scope& s, const val& value) {
  if (to.is_tuple) {
    require_defined(rt_, value);
    const auto items = rt_.iterate(value);
    if (items.size() != to.items.size())
      rt_.fail("cannot unpack " + std::to_string(items.size()) + " values into " +
               std::to_string(to.items.size()) + " names");
    for (std::size_t i = 0; i < items.size(); ++i)
      assign(to.items[i], s, items[i]);
    return;
  }
  if (to.attribute.empty()) return s.set(to.name, value);
  const val* found = s.find(to.name);
  auto* ns = found ? dynamic_cast<namespace_object*>(found->as_object()) : nullptr;
  if (ns == nullptr) rt_.fail("cannot assign attribute on non-namespace object '" + to.name + "'");
  rt_.charge_elements(1);
  ns->set(to.attribute, value);
}

void evaluator::exec_assign_block(const stmt& node, scope& s) {
  val result(std::make_shared<const text>(capture(node.bodies[0], make_scope(&s))));
  if (node.value) result = eval_filter(*node.value, s, &result);
  assign(node.to, s, result);
}

evaluator::flow evaluator::exec_with(const stmt& node, scope& s) {
  scope& inner = make_scope(&s);
  for (const parameter& p : node.parameters)
    inner.set(p.name, eval(*p.value, s));
  return exec(node.bodies[0], inner);
}

void evaluator::exec_call_block(const stmt& node, scope& s) {
  const expr& e = *node.value;
  const val function = eval(*e.items[0], s);
  call_args args = eval_args(e, s);
  args.named.emplace_back("caller", val(rt_.make_object<macro_object>(*this, node, s)));
  rt_.line = node.line;
  write(to_text(rt_, call(function, args)));
}

val evaluator::call_macro(const stmt& macro, scope& closure, const call_args& args) {
  const std::size_t n = macro.parameters.size();
  scope& s = make_scope(&closure);
  const auto describe = [&] { return "macro '" + macro.name + "'"; };
  std::vector<val> extra;
  for (std::size_t i = 0; i < args.positional.size(); ++i) {
    if (i < n)
      s.set(macro.parameters[i].name, args.positional[i]);
    else
      extra.push_back(args.positional[i]);
  }
  if (!extra.empty() && !macro.takes_varargs)
    rt_.fail(describe() + " takes not more than " + std::to_string(n) + " argument(s)");
  dict_data* more = rt_.make_dict();
  for (const auto& [name, value] : args.named) {
    bool is_parameter = name == "caller" && macro.takes_caller;
    for (const parameter& p : macro.parameters)
      is_parameter = is_parameter || p.name == name;
    bool given = false;
    for (const auto& known : s.names)
      given = given || known.first == name;
    if (given) rt_.fail(describe() + " got multiple values for argument '" + name + "'");
    if (is_parameter)
      s.set(name, value);
    else if (macro.takes_kwargs)
      rt_.set(*more, rt_.make_text(name), value);
    else
      rt_.fail(describe() + " takes no keyword argument '" + name + "'");
  }
  for (const parameter& p : macro.parameters) {
    bool given = false;
    for (const auto& known : s.names)
      given = given || known.first == p.name;
    if (given) continue;
    s.set(p.name, p.value ? eval(*p.value, s)
                          : runtime::undefined("parameter '" + p.name + "' was not provided"));
  }
  if (macro.takes_varargs) s.set("varargs", val(rt_.make_list(list_data::tuple, std::move(extra))));
  if (macro.takes_kwargs) s.set("kwargs", val(more));
  return rt_.make_text(capture(macro.bodies[0], s));
}

} // namespace twill::models::jinja
