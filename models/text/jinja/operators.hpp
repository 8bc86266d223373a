// operators: Python's operators on template values. They throw template_error where Python raises.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "models/text/jinja/runtime.hpp"
#include "models/text/jinja/value.hpp"

namespace twill::models::jinja {

/// Computes an arithmetic operator: + - * / // % **
val apply_binary(runtime& rt, std::string_view op, const val& a, const val& b);
/// Computes a comparison: == != < <= > >= in, not in
bool apply_compare(runtime& rt, std::string_view op, const val& a, const val& b);
bool contains(runtime& rt, const val& container, const val& item);
val negate(runtime& rt, const val& a);
/// len(v).
std::int64_t length_of(runtime& rt, const val& v);
/// `format % args` of strings: %s %r %d %i %f %g %e %x %o %c %% with flags, width, precision.
val format_percent(runtime& rt, const text& format, const val& args);

/// obj.name as Jinja looks it up: methods, then items.
val get_attribute(runtime& rt, const val& object, std::string_view name);
/// obj[key]: items, then attributes.
val get_item(runtime& rt, const val& object, const val& key);
val get_slice(runtime& rt, const val& object, std::optional<std::int64_t> start,
              std::optional<std::int64_t> stop, std::optional<std::int64_t> step);

/// Fails for an undefined value, which may only be printed and tested.
[[noreturn]] void fail_undefined(runtime& rt, const val& v);
inline void require_defined(runtime& rt, const val& v) {
  if (v.is_undefined()) fail_undefined(rt, v);
}

} // namespace twill::models::jinja
