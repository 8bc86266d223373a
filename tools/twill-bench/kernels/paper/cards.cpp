#include "tools/twill-bench/kernels/paper/cards.hpp"

#include <algorithm>

namespace twill::bench::paper {

namespace {

// Sources of the figures. "Data sheet" is NVIDIA's data sheet of the card: number of
// multiprocessors, boost clock, memory, dense 16-bit tensor rate. "Guide" is the table of compute
// capabilities in the CUDA C++ Programming Guide: shared memory, threads. "gpu-benches" is
// github.com/te42kyfo/gpu-benches, whose folders hold measured results: gpu-stream (the column
// "read" at full occupancy), gpu-l2-cache, gpu-latency, gpu-small-kernels.
constexpr card table[] = {
    {.name = "A100-40G",
     .multiprocessors = 108,
     .clock_hz = 1.41e9,
     .dram_bytes_per_s = 1555e9,
     .read_share = 1490.0 / 1555, // gpu-benches gpu-stream/a100_40
     .l2_bytes_per_s = 5.4e12,    // gpu-benches gpu-l2-cache/a100_80: the same chip and clock
     .dram_latency_s = 407e-9,    // gpu-benches gpu-latency/a100_40: 574 cycles
     .l2_latency_s = 200e-9,      // same file: 151 ns near, up to 302 ns far; a value between
     .tensor_fma_per_s = 156e12,  // data sheet: 312 TFLOP/s
     .mma_share = 1,              // Ampere has no other instruction
     .shared_bytes = 164 * 1024,
     .threads = 2048,
     .launch_s = 1.34e-6}, // gpu-benches gpu-small-kernels/a100_80_graph: 64 KB at 49 GB/s
    {.name = "A100-80G",
     .multiprocessors = 108,
     .clock_hz = 1.41e9,
     .dram_bytes_per_s = 2039e9,
     .read_share = 1769.0 / 2039, // gpu-benches gpu-stream/a100_80
     .l2_bytes_per_s = 5.4e12,    // this and the members below are as on the A100-40G
     .dram_latency_s = 407e-9,
     .l2_latency_s = 200e-9,
     .tensor_fma_per_s = 156e12,
     .mma_share = 1,
     .shared_bytes = 164 * 1024,
     .threads = 2048,
     .launch_s = 1.34e-6},
    {.name = "A6000",
     .multiprocessors = 84,
     .clock_hz = 1.8e9,
     .dram_bytes_per_s = 768e9,
     .read_share = 679.0 / 696,   // derived from the A40's gpu-stream/a40: the same chip, GA102
     .l2_bytes_per_s = 2.43e12,   // derived from the A40's gpu-cache/a40 at 2 to 6 MB
     .dram_latency_s = 283e-9,    // derived from gpu-stream/a40: 10,752 loads of 8 bytes, 304 GB/s
     .l2_latency_s = 200e-9,      // assumption: as on the A100
     .tensor_fma_per_s = 77.4e12, // data sheet: 309.7 TFLOP/s with sparsity, half of it dense
     .mma_share = 1,
     .shared_bytes = 100 * 1024,
     .threads = 1536,
     .launch_s = 1.09e-6}, // derived from the A40's gpu-small-kernels/a40_graph: 64 KB at 60 GB/s
    {.name = "H100",
     .multiprocessors = 132,
     .clock_hz = 1.98e9, // of the data sheet's 66.9 TFLOP/s in f32; under load it is lower
     .dram_bytes_per_s = 3352e9,
     .read_share = 1942.0 / 2039,  // derived from the PCIe card's gpu-stream/h100_pcie
     .l2_bytes_per_s = 9.7e12,     // derived from the H200's gpu-l2-cache/h200: the same chip
     .dram_latency_s = 370e-9,     // derived from the PCIe card's gpu-latency/h100_pcie: 650 cycles
     .l2_latency_s = 200e-9,       // same file: 151 ns near, 271 ns far; a value between
     .tensor_fma_per_s = 494.7e12, // data sheet: 989.4 TFLOP/s
     .mma_share = 0.62,            // assumption: reports of mma.sync range from 0.60 to 0.75
     .shared_bytes = 228 * 1024,
     .threads = 2048,
     .launch_s = 1.26e-6}, // derived from the H200's gpu-small-kernels/h200_graph: 64 KB at 52 GB/s
    {.name = "H200",
     .multiprocessors = 132,
     .clock_hz = 1.98e9,
     .dram_bytes_per_s = 4800e9,
     .read_share = 3888.0 / 4800, // gpu-benches gpu-l2-cache/h200 beyond the cache
     // gpu-benches gpu-l2-cache/h200; the members below are as on the H100
     .l2_bytes_per_s = 9.7e12,
     .dram_latency_s = 370e-9,
     .l2_latency_s = 200e-9,
     .tensor_fma_per_s = 494.7e12,
     .mma_share = 0.62,
     .shared_bytes = 228 * 1024,
     .threads = 2048,
     .launch_s = 1.26e-6},
};

} // namespace

std::span<const card> cards() {
  return table;
}

const card& card_of(std::string_view name) {
  return *std::find_if(std::begin(table), std::end(table) - 1,
                       [&](const card& c) { return name == c.name; });
}

} // namespace twill::bench::paper
