// The only file that depends on the version of Kokkos (3.4.1 to 5.x). Include this header instead
// of <Kokkos_Core.hpp>.
//
// start_kokkos() starts Kokkos; any number of devices may call it. Kokkos before 4.0 cannot be
// initialised twice, so start_kokkos() initialises it once per process, and nothing finalises it.
#pragma once

#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <type_traits>

#include <Kokkos_Core.hpp>
#if KOKKOS_VERSION < 30700
#include <Kokkos_MathematicalFunctions.hpp>
#endif

namespace twill::gpu::detail {

using kokkos_host = Kokkos::DefaultHostExecutionSpace;
/// A host execution space of one thread where the installed Kokkos has one (Debian's has only
/// OpenMP), else kokkos_host.
#ifdef KOKKOS_ENABLE_SERIAL
using kokkos_serial = Kokkos::Serial;
inline constexpr bool host_has_teams = !std::is_same_v<kokkos_host, Kokkos::Serial>;
#else
using kokkos_serial = kokkos_host;
inline constexpr bool host_has_teams = true; ///< kokkos_host supports teams of several lanes
#endif

/// The mathematical functions for kernels on any backend, such as math::exp(float).
#if KOKKOS_VERSION < 30700
namespace math = Kokkos::Experimental; // drop when Kokkos >= 3.7
#else
namespace math = Kokkos;
#endif

#ifdef KOKKOS_ENABLE_CUDA
/// Starts only the host execution spaces of a Kokkos that was built with CUDA: Kokkos::initialize()
/// would end the process on a machine without a GPU.
inline void start_host_spaces(const Kokkos::InitializationSettings& settings) {
  Kokkos::Impl::pre_initialize(settings);
  kokkos_host::impl_initialize(settings);
#ifdef KOKKOS_ENABLE_SERIAL
  if constexpr (!std::is_same_v<kokkos_host, Kokkos::Serial>)
    Kokkos::Serial::impl_initialize(settings);
#endif
  Kokkos::Impl::post_initialize(settings);
}

/// Makes Kokkos free its GPU resources when the process ends; otherwise Kokkos prints a warning
/// about the missing finalisation at exit. On a lost GPU there is nothing to free and Kokkos would
/// abort, so the call is skipped.
inline void finalize_gpu_at_exit() {
  std::atexit([] {
    if (cudaDeviceSynchronize() != cudaSuccess) return;
    try {
      Kokkos::Cuda::impl_finalize();
    } catch (const std::exception&) { // the process ends in any case
    }
  });
}
#endif

/// The first call starts Kokkos; every call also enables the calling thread to launch kernels.
/// `threads` is the number of host threads and matters on the first call only. `device_id` is the
/// number of a GPU, or -1 for none; the first call with a GPU starts that GPU. Returns the size of
/// the thread pool. Several threads may call the function at once.
inline int start_kokkos(int threads, [[maybe_unused]] int device_id = -1) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
#if KOKKOS_VERSION < 30500 && defined(KOKKOS_ENABLE_OPENMP)
  // Kokkos 3.4 keeps its OpenMP pool in a thread-local variable of the initialising thread, so
  // launches from other threads would run serially. Drop `pool` when twill requires Kokkos >= 3.5.
  static Kokkos::Impl::OpenMPExec* pool = nullptr;
#endif
  if (!Kokkos::is_initialized()) {
#if KOKKOS_VERSION < 30700
    Kokkos::InitArguments settings;
    settings.num_threads = threads;
    settings.disable_warnings = true;
#else
    Kokkos::InitializationSettings settings;
    settings.set_num_threads(threads).set_disable_warnings(true);
#endif
#ifdef KOKKOS_ENABLE_CUDA
    start_host_spaces(settings);
#else
    Kokkos::initialize(settings);
#endif
#if KOKKOS_VERSION < 30500 && defined(KOKKOS_ENABLE_OPENMP)
    pool = Kokkos::Impl::t_openmp_instance;
#endif
  }
#if KOKKOS_VERSION < 30500 && defined(KOKKOS_ENABLE_OPENMP)
  if (Kokkos::Impl::t_openmp_instance == nullptr) Kokkos::Impl::t_openmp_instance = pool;
#endif
#ifdef KOKKOS_ENABLE_CUDA
  static bool gpu_started = false;
  if (device_id >= 0 && !gpu_started) {
    Kokkos::InitializationSettings settings;
    settings.set_device_id(device_id);
    Kokkos::Cuda::impl_initialize(settings);
    finalize_gpu_at_exit();
    gpu_started = true;
  }
#endif
#if KOKKOS_VERSION < 30700
  return Kokkos::DefaultHostExecutionSpace::concurrency();
#else
  return Kokkos::DefaultHostExecutionSpace().concurrency();
#endif
}

/// The compute capability that Kokkos was built for (90 is 9.0); 0 where Kokkos does not report its
/// own.
#ifdef KOKKOS_IMPL_ARCH_NVIDIA_GPU
inline constexpr int kokkos_gpu_arch = KOKKOS_IMPL_ARCH_NVIDIA_GPU;
#else
inline constexpr int kokkos_gpu_arch = 0; // drop when Kokkos >= 4.2
#endif

/// The version and execution space of Kokkos, for example "Kokkos 3.4.1 OpenMP".
template <class Space>
std::string backend_name() {
  return "Kokkos " + std::to_string(KOKKOS_VERSION / 10000) + "." +
         std::to_string(KOKKOS_VERSION / 100 % 100) + "." + std::to_string(KOKKOS_VERSION % 100) +
         " " + Space::name();
}

} // namespace twill::gpu::detail
