// globals: the functions that every template can call: range, namespace, dict, cycler and joiner,
// as in Jinja, and raise_exception and strftime_now, as in Hugging Face's transformers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/text/jinja/evaluator.hpp"

namespace twill::models::jinja {

/// The object made by namespace(). `{% set ns.name = ... %}` may change its members.
struct namespace_object final : object {
  std::string type_name() const override { return "Namespace"; }
  std::optional<val> attribute(std::string_view name) const override;
  void set(std::string_view name, val value);

  std::vector<std::pair<std::string, val>> members;
};

void add_globals(runtime& rt, scope& root);

} // namespace twill::models::jinja
