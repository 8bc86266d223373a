// evaluator: runs a parsed template once.
//
// An evaluator serves one render on one thread. The parsed template, the runtime and the scope of
// the global names must outlive it. Throws template_error.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/text/jinja/ast.hpp"
#include "models/text/jinja/runtime.hpp"
#include "models/text/jinja/value.hpp"

namespace twill::models::jinja {

/// The names of one scope; an inner scope hides names of an outer one and never changes them.
struct scope {
  explicit scope(scope* outer = nullptr) : parent(outer) {}

  const val* find(std::string_view name) const;
  void set(std::string_view name, val value);

  std::vector<std::pair<std::string, val>> names;
  scope* parent;
};

class loop_object;

class evaluator {
public:
  explicit evaluator(runtime& rt) : rt_(rt) {}

  runtime& rt() { return rt_; }
  /// Runs the whole template and returns its output.
  text run(const body& statements, scope& root);

  /// From now on, each loop over the dicts of `list`, or over a slice of it, records the index of
  /// the current dict for watched_item().
  void watch(const val& list);
  /// The index in the watched list of the item that the innermost loop over that list is at, or -1.
  int watched_item() const { return watched_item_; }

  val eval(const expr& e, scope& s);
  val call(const val& callee, call_args& args);
  val apply_filter(std::string_view name, const val& input, const call_args& args);
  bool apply_test(std::string_view name, const val& input, const call_args& args);

  /// Calls a macro (or a call block's body); `closure` is where it was defined.
  val call_macro(const stmt& macro, scope& closure, const call_args& args);
  /// Runs a loop's body over `items` and returns its output; used for `loop(...)` in recursive
  /// loops.
  val call_loop(const stmt& loop, scope& outer, const val& items, int depth);
  /// Makes a scope that exists until the render ends.
  scope& make_scope(scope* parent);

private:
  enum class flow { next, leave_loop, continue_loop };

  flow exec(const body& statements, scope& s);
  flow exec_one(const stmt& node, scope& s);
  flow exec_branch(const stmt& node, scope& s);
  flow exec_loop(const stmt& node, scope& s, const val& items, int depth);
  std::vector<val> loop_items(const stmt& node, scope& s, const val& items);
  void exec_assign_block(const stmt& node, scope& s);
  void exec_call_block(const stmt& node, scope& s);
  flow exec_with(const stmt& node, scope& s);
  text capture(const body& statements, scope& s, flow* left_by = nullptr);
  void write(const text& t);
  void assign(const target& to, scope& s, const val& value);

  val eval_node(const expr& e, scope& s);
  val eval_name(const expr& e, scope& s);
  val eval_list(const expr& e, scope& s);
  val eval_dict(const expr& e, scope& s);
  val eval_slice(const expr& e, scope& s);
  val eval_call(const expr& e, scope& s);
  val eval_filter(const expr& e, scope& s, const val* input);
  val eval_concat(const expr& e, scope& s);
  val eval_compare(const expr& e, scope& s);
  val eval_conditional(const expr& e, scope& s);
  call_args eval_args(const expr& e, scope& s);

  runtime& rt_;
  text* out_ = nullptr;
  std::deque<scope> scopes_;
  std::unordered_map<const dict_data*, int> watched_;
  int watched_item_ = -1;
};

} // namespace twill::models::jinja
