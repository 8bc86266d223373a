#include "models/text/jinja/tests.hpp"

#include <utility>

#include "models/text/jinja/arguments.hpp"
#include "models/text/jinja/filters.hpp"
#include "models/text/jinja/operators.hpp"
#include "models/text/jinja/print.hpp"
#include "models/text/jinja/text_ops.hpp"

namespace twill::models::jinja {
namespace {

void take_none(evaluator& ev, const call_args& args) {
  const arguments a(ev.rt(), "test", args, {});
}

bool is_defined(evaluator& ev, const val& v, const call_args& args) {
  take_none(ev, args);
  return !v.is_undefined();
}
bool is_undefined(evaluator& ev, const val& v, const call_args& args) {
  return !is_defined(ev, v, args);
}
bool is_none(evaluator& ev, const val& v, const call_args& args) {
  take_none(ev, args);
  return v.is_none();
}
bool is_boolean(evaluator&, const val& v, const call_args&) {
  return v.as_bool() != nullptr;
}
bool is_true(evaluator&, const val& v, const call_args&) {
  return v.as_bool() && *v.as_bool();
}
bool is_false(evaluator&, const val& v, const call_args&) {
  return v.as_bool() && !*v.as_bool();
}
bool is_integer(evaluator&, const val& v, const call_args&) {
  return v.as_int() != nullptr || v.as_big() != nullptr;
}
bool is_float(evaluator&, const val& v, const call_args&) {
  return v.as_double() != nullptr;
}
bool is_number(evaluator&, const val& v, const call_args&) {
  return v.is_number();
}
bool is_string(evaluator&, const val& v, const call_args&) {
  return v.as_text() != nullptr;
}
bool is_mapping(evaluator&, const val& v, const call_args&) {
  return v.as_dict() != nullptr;
}
bool is_iterable(evaluator&, const val& v, const call_args&) {
  return v.is_undefined() || v.as_text() || v.as_list() || v.as_dict();
}
bool is_sequence(evaluator&, const val& v, const call_args&) {
  return v.is_undefined() || v.as_text() || v.as_dict() ||
         (v.as_list() && v.as_list()->kind != list_data::generator);
}
bool is_callable(evaluator&, const val& v, const call_args&) {
  // In Jinja an undefined value has the method that makes it callable, although calling it fails.
  return v.is_undefined() || (v.as_object() && v.as_object()->callable());
}
template <bool Upper>
bool is_case(evaluator& ev, const val& v, const call_args&) {
  return has_case(to_text(ev.rt(), v), Upper);
}

/// Returns whether v % n == remainder.
bool divides(evaluator& ev, const val& v, std::int64_t n, std::int64_t remainder) {
  return equal(apply_binary(ev.rt(), "%", v, val(n)), val(remainder));
}
bool is_odd(evaluator& ev, const val& v, const call_args&) {
  return divides(ev, v, 2, 1);
}
bool is_even(evaluator& ev, const val& v, const call_args&) {
  return divides(ev, v, 2, 0);
}
bool is_divisible(evaluator& ev, const val& v, const call_args& args) {
  const arguments a(ev.rt(), "divisibleby", args, {"num"}, 1);
  return equal(apply_binary(ev.rt(), "%", v, *a.get(0)), val(std::int64_t{0}));
}

template <int Op>
bool compares(evaluator& ev, const val& v, const call_args& args) {
  constexpr const char* ops[] = {"==", "!=", "<", "<=", ">", ">=", "in"};
  const arguments a(ev.rt(), ops[Op], args, {"other"}, 1);
  return apply_compare(ev.rt(), ops[Op], v, *a.get(0));
}

bool is_same(evaluator& ev, const val& v, const call_args& args) {
  const arguments a(ev.rt(), "sameas", args, {"other"}, 1);
  const val& other = *a.get(0);
  if (v.as_list() || other.as_list()) return v.as_list() == other.as_list();
  if (v.as_dict() || other.as_dict()) return v.as_dict() == other.as_dict();
  return v.data().index() == other.data().index() && equal(v, other);
}

bool is_filter(evaluator&, const val& v, const call_args&) {
  return v.as_text() && find_filter(v.as_text()->bytes) != nullptr;
}
bool is_test(evaluator&, const val& v, const call_args&) {
  return v.as_text() && find_test(v.as_text()->bytes) != nullptr;
}
bool is_escaped(evaluator&, const val&, const call_args&) {
  return false;
}

} // namespace

test_fn find_test(std::string_view name) {
  constexpr std::pair<std::string_view, test_fn> tests[] = {
      {"defined", is_defined},
      {"undefined", is_undefined},
      {"none", is_none},
      {"string", is_string},
      {"number", is_number},
      {"integer", is_integer},
      {"float", is_float},
      {"boolean", is_boolean},
      {"true", is_true},
      {"false", is_false},
      {"mapping", is_mapping},
      {"iterable", is_iterable},
      {"sequence", is_sequence},
      {"callable", is_callable},
      {"odd", is_odd},
      {"even", is_even},
      {"divisibleby", is_divisible},
      {"upper", is_case<true>},
      {"lower", is_case<false>},
      {"sameas", is_same},
      {"filter", is_filter},
      {"test", is_test},
      {"escaped", is_escaped},
      {"==", compares<0>},
      {"eq", compares<0>},
      {"equalto", compares<0>},
      {"!=", compares<1>},
      {"ne", compares<1>},
      {"<", compares<2>},
      {"lt", compares<2>},
      {"lessthan", compares<2>},
      {"<=", compares<3>},
      {"le", compares<3>},
      {">", compares<4>},
      {"gt", compares<4>},
      {"greaterthan", compares<4>},
      {">=", compares<5>},
      {"ge", compares<5>},
      {"in", compares<6>},
  };
  for (const auto& [key, test] : tests)
    if (key == name) return test;
  return nullptr;
}

} // namespace twill::models::jinja
