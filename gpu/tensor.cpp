#include "gpu/tensor.hpp"

namespace twill::gpu {

const char* name_of(dtype t) {
  switch (t) {
  case dtype::f32:
    return "f32";
  case dtype::f16:
    return "f16";
  case dtype::bf16:
    return "bf16";
  case dtype::i32:
    return "i32";
  case dtype::u8:
    return "u8";
  case dtype::i8:
    break;
  }
  return "i8";
}

} // namespace twill::gpu
