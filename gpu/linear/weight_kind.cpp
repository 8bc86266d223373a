#include "gpu/linear/weight_kind.hpp"

namespace twill::gpu {

const char* name_of(compute_type t) {
  switch (t) {
  case compute_type::f32:
    return "f32";
  case compute_type::f16:
    return "f16";
  case compute_type::bf16:
    return "bf16";
  case compute_type::int8:
    return "int8";
  case compute_type::int8x2:
    return "int8x2";
  case compute_type::w8a8:
    break;
  }
  return "w8a8";
}

const char* name_of(weight_kind k) {
  switch (k) {
  case weight_kind::f32:
    return "f32";
  case weight_kind::f16:
    return "f16";
  case weight_kind::bf16:
    return "bf16";
  case weight_kind::grouped_u4:
    return "grouped_u4";
  case weight_kind::grouped_u8:
    return "grouped_u8";
  case weight_kind::grouped_u4_as_u8:
    break;
  }
  return "grouped_u4_as_u8";
}

} // namespace twill::gpu
