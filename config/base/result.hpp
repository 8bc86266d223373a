// result<T, E>: a value, or an error code with a detail sentence.
//
// E is the `enum class errc` of the source folder that returns the result; the detail sentence
// names the field, its rule and the given value. Callers test ok(). There is no conversion to bool,
// because for a std::error_code true means failure. A result is a plain value and not thread-safe.
// Calling value() on a failure or code() on a success is a programmer error (TWILL_ASSERT).
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "config/base/assert.hpp"

namespace twill {

/// The error alternative of a result: return `failure{errc::x, "detail"}` from a result function.
template <class E>
struct failure {
  E code;
  std::string detail;
};
template <class E>
failure(E) -> failure<E>;
template <class E, class S>
failure(E, S) -> failure<E>;

template <class T, class E>
class [[nodiscard]] result {
public:
  using value_type = T;
  using error_type = failure<E>;

  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(failure<E> error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return state_.index() == 0; }

  T& value() & {
    TWILL_ASSERT(ok(), "result::value() on a failure");
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    TWILL_ASSERT(ok(), "result::value() on a failure");
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    TWILL_ASSERT(ok(), "result::value() on a failure");
    return std::move(*std::get_if<0>(&state_));
  }

  E code() const { return error().code; }
  const std::string& detail() const { return error().detail; }
  const failure<E>& error() const {
    TWILL_ASSERT(!ok(), "result::error() on a success");
    return *std::get_if<1>(&state_);
  }

private:
  std::variant<T, failure<E>> state_;
};

/// The value of a result that carries no more than success.
using nothing = std::monostate;

} // namespace twill
