// must: returns a successful result, or throws client_error with the message of a failed one. For
// commands that end at the first failure.
#pragma once

#include <utility>

#include "tools/common/http_client.hpp"

namespace twill::tools {

template <class T>
T must(T result) {
  if (!result.ok()) throw client_error(result.detail());
  return result;
}

} // namespace twill::tools
