// methods: Python's methods of str, list, dict and tuple that templates call.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "models/text/jinja/runtime.hpp"
#include "models/text/jinja/value.hpp"

namespace twill::models::jinja {

using method_fn = val (*)(runtime& rt, const val& self, const call_args& args);

/// The method of that name; nullptr when values of this type have none.
method_fn find_method(const val& self, std::string_view name);
method_fn find_text_method(std::string_view name);
method_fn find_list_method(std::string_view name, bool is_tuple);
method_fn find_dict_method(std::string_view name);

/// A method as a value, as in `set f = s.upper`.
struct bound_method final : object {
  bound_method(val s, method_fn f, std::string n)
      : self(std::move(s)), method(f), name(std::move(n)) {}
  std::string type_name() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  val call(runtime& rt, call_args& args) override { return method(rt, self, args); }

  val self;
  method_fn method;
  std::string name;
};

} // namespace twill::models::jinja
