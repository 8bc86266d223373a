#include "tests/gpu/forms.hpp"

#include "gpu/attention/portable/attention_portable.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/linear/portable/linear_portable.hpp"
#include "gpu/portable/probe_portable.hpp"
#include "gpu/rows/portable/rows_portable.hpp"
#include "gpu/sampling/portable/sampling_portable.hpp"

namespace twill::test {

namespace {

template <class Launch>
constexpr gpu::detail::op_backends table{
    gpu::detail::linear_portable<Launch>::table,    gpu::detail::linear_portable<Launch>::table,
    gpu::detail::attention_portable<Launch>::table, gpu::detail::sampling_portable<Launch>::table,
    gpu::detail::rows_portable<Launch>::table,      gpu::detail::probe_portable<Launch>::table};

constexpr int lanes = gpu::detail::host_has_teams ? 2 : 1;

const gpu::detail::op_backends* table_of(int form) {
  if (form == team_form) return &table<gpu::detail::launcher<gpu::detail::kokkos_host, lanes>>;
  if (form == serial_form) return &table<gpu::detail::launcher<gpu::detail::kokkos_serial>>;
  return nullptr;
}

} // namespace

const char* name_of_form(int form) {
  return form == team_form ? "teams" : form == serial_form ? "Serial" : "host";
}

std::unique_ptr<gpu::device> open_form(int form, const std::string& isa) {
  return gpu::device::open({.kind = "host",
                            .threads = 2,
                            .memory_bytes = std::int64_t{4} << 30,
                            .isa = isa,
                            .ops = table_of(form)})
      .value();
}

} // namespace twill::test
