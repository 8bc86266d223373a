#include "tests/gpu/portable_ops.hpp"

#include "gpu/detail/op_backends.hpp"

namespace twill::test {

const gpu::detail::op_backends* portable_ops() {
  return &gpu::detail::portable_backends();
}

} // namespace twill::test
