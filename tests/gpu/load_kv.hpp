// load_kv: one element of KV as a float, for tests.
#pragma once

#include <cstdint>

#include "gpu/detail/kv_rows.hpp"

namespace twill::gpu {

/// Element i of an array as a float. An integer code is not scaled.
inline float load_kv(const void* data, dtype type, std::int64_t i) {
  return with_kv_element(type, [=](auto element) {
    return detail::widen(static_cast<const decltype(element)*>(data)[i]);
  });
}

} // namespace twill::gpu
