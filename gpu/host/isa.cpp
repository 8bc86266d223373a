#include "gpu/host/isa.hpp"

#include <array>

namespace twill::gpu::host {

namespace {
constexpr std::array<const char*, 5> names{"plain", "avx2", "avx512", "avx512_vnni", "avx512_bf16"};
}

const char* name_of(isa level) {
  return names[static_cast<std::size_t>(level)];
}

std::optional<isa> parse_isa(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return static_cast<isa>(i);
  return std::nullopt;
}

isa widest_isa() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return isa::plain;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
    return isa::avx2;
  if (!__builtin_cpu_supports("avx512vnni")) return isa::avx512;
  return __builtin_cpu_supports("avx512bf16") ? isa::avx512_bf16 : isa::avx512_vnni;
#else
  return isa::plain;
#endif
}

} // namespace twill::gpu::host
