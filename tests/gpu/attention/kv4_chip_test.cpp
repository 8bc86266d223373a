// KV in 4 bits: a GPU packs and unpacks it with another implementation than the host, and both must
// store the same bits.
#include "tests/catch.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

#include "gpu/attention/kv4.hpp"
#include "gpu/detail/half.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/ragged_case.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill;
using gpu::dtype;
using test::device_array;

namespace {

using bytes = std::vector<unsigned char>;

/// Random numbers as bytes of a KV type.
bytes random_kv(std::size_t n, dtype type, unsigned seed) {
  const auto x = test::random_floats(n, seed);
  bytes to(n * gpu::size_of(type));
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint16_t half =
        type == dtype::f16 ? gpu::detail::f32_to_f16(x[i]) : gpu::detail::f32_to_bf16(x[i]);
    if (type == dtype::f32)
      std::memcpy(to.data() + 4 * i, &x[i], 4);
    else
      std::memcpy(to.data() + 2 * i, &half, 2);
  }
  return to;
}

} // namespace

TEST_CASE("4-bit KV has the same bits in the host's and a GPU's implementation", "[kv4]") {
  std::vector<int> compared{test::host_implementation, test::team_implementation};
  if (test::tests_cuda()) compared.push_back(test::cuda_implementation);
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16})
    for (const std::int32_t block_tokens : {8, 16, 40})
      for (const std::int32_t head_dim : {2, 64, 80, 128}) {
        CAPTURE(static_cast<int>(type), block_tokens, head_dim);
        gpu::kv_layer kv;
        kv.type = type;
        kv.n_blocks = 3;
        kv.n_kv_heads = 2;
        kv.block_tokens = block_tokens;
        kv.head_dim = head_dim;
        const auto n = static_cast<std::size_t>(3 * 2 * block_tokens * head_dim);
        const bytes keys = random_kv(n, type, 1), values = random_kv(n, type, 2);
        const std::int64_t stride = gpu::kv4_block_bytes(kv);
        std::vector<bytes> packed, unpacked;
        for (const int implementation : compared) {
          auto dev = test::open_implementation(implementation);
          device_array<unsigned char> k(*dev, keys), v(*dev, values);
          const device_array<unsigned char> to(*dev, bytes(static_cast<std::size_t>(3 * stride)));
          kv.keys = k.data();
          kv.values = v.data();
          gpu::kv4_pack(*dev, kv, 0, 3, to.data(), stride);
          gpu::kv4_unpack(*dev, kv, 0, 3, to.data(), stride);
          packed.push_back(to.get());
          unpacked.push_back(k.get());
          const bytes of_values = v.get();
          unpacked.back().insert(unpacked.back().end(), of_values.begin(), of_values.end());
        }
        for (std::size_t i = 1; i < compared.size(); ++i) {
          CAPTURE(test::name_of_implementation(compared[i]));
          CHECK(packed[0] == packed[i]);
          CHECK(unpacked[0] == unpacked[i]);
        }
      }
}
