#include "tests/gpu/implementations.hpp"

#include "gpu/attention/portable/attention_portable.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/linear/portable/linear_portable.hpp"
#include "gpu/portable/probe_portable.hpp"
#include "gpu/rows/portable/rows_portable.hpp"
#include "gpu/sampling/portable/sampling_portable.hpp"
#include "tests/gpu/distant/distant_device.hpp"
#include "tests/gpu/tested_device.hpp"

namespace twill::test {

namespace {

template <class Launch>
constexpr gpu::detail::op_backends table{
    {&gpu::detail::linear_portable<Launch>::table, &gpu::detail::attention_portable<Launch>::table,
     &gpu::detail::sampling_portable<Launch>::table, &gpu::detail::rows_portable<Launch>::table,
     &gpu::detail::probe_portable<Launch>::table},
    &table<Launch>};

constexpr int lanes = gpu::detail::host_has_teams ? 2 : 1;

const gpu::detail::op_backends* table_of(int implementation) {
  if (implementation == team_implementation)
    return &table<gpu::detail::launcher<gpu::detail::kokkos_host, lanes>>;
  if (implementation == serial_implementation)
    return &table<gpu::detail::launcher<gpu::detail::kokkos_serial>>;
  return nullptr;
}

} // namespace

const char* name_of_implementation(int implementation) {
  constexpr const char* names[] = {"host", "teams", "Serial", "distant", "cuda"};
  return names[implementation];
}

std::vector<int> implementations() {
  std::vector<int> all;
  if (tests_host())
    all = {host_implementation, team_implementation, serial_implementation, distant_implementation};
  if (tests_cuda()) all.push_back(cuda_implementation);
  return all;
}

std::vector<int> portable_implementations() {
  std::vector<int> all = implementations();
  std::erase(all, host_implementation);
  return all;
}

std::unique_ptr<gpu::device> open_implementation(int implementation, const std::string& isa) {
  gpu::device_config config{.threads = 2,
                            .memory_bytes = std::int64_t{4} << 30,
                            .isa = isa,
                            .ops = table_of(implementation)};
  if (implementation == distant_implementation) return open_distant(config);
  if (implementation == cuda_implementation) return open_tested(config);
  config.kind = "host";
  return gpu::device::open(config).value();
}

std::vector<std::string> tested_isas() {
  std::vector<std::string> names;
  if (!tests_host()) return names;
  for (int i = 0; i <= static_cast<int>(gpu::host::widest_isa()); ++i)
    names.emplace_back(gpu::host::name_of(static_cast<gpu::host::isa>(i)));
  return names;
}

std::unique_ptr<gpu::device> open_host(const std::string& isa, std::int32_t threads) {
  return gpu::device::open({.kind = "host",
                            .threads = threads,
                            .memory_bytes = std::int64_t{4} << 30,
                            .isa = isa})
      .value();
}

} // namespace twill::test
