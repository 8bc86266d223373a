// greedy_sampler: finds the most likely token of each row of logits. Call all functions on the
// thread that owns the device.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/sampling/sample.hpp"

namespace twill::models::offload {

class greedy_sampler {
public:
  static gpu::result<greedy_sampler> create(gpu::device& dev, std::int32_t max_rows) {
    auto memory = dev.allocate(static_cast<std::size_t>(max_rows) * sizeof(std::int32_t), "draws");
    if (!memory.ok()) return memory.error();
    greedy_sampler sampler;
    sampler.device_ = std::move(memory).value();
    return gpu::result<greedy_sampler>(std::move(sampler));
  }
  /// Waits for the device. The result is valid until the next call. // (rows of logits)
  const std::vector<std::int32_t>& tokens(gpu::device& dev, gpu::tensor_ref logits) {
    host_.resize(static_cast<std::size_t>(logits.rows()));
    gpu::argmax(dev, logits, static_cast<std::int32_t*>(device_.data()));
    dev.download(host_.data(), device_.data(), host_.size() * sizeof(std::int32_t));
    return host_;
  }

private:
  greedy_sampler() = default;
  gpu::buffer device_;
  std::vector<std::int32_t> host_;
};

} // namespace twill::models::offload
