#include "tools/twill/serving_fit.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "actors/executor/decoder_sizing.hpp"
#include "config/base/units.hpp"
#include "models/decoder/decoder.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/offload/choose_placement.hpp"
#include "models/offload/plan/timeline.hpp"
#include "tools/twill/measure.hpp"

namespace twill::tools {
namespace {

namespace fs = std::filesystem;
namespace offload = models::offload;

std::string gb_per_s(double bytes_per_second) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GB/s", bytes_per_second / 1e9);
  return text;
}

std::string tokens_per_s(double rate) {
  char text[48];
  std::snprintf(text, sizeof text, rate < 10 ? "%.2g tokens/s" : "%.0f tokens/s", rate);
  return text;
}

/// Computes how many bytes of weights are placed in each tier (device, host, disk).
/// `fit.memory.weights` is the device memory for weights, including the buffers for streamed
/// weights.
void place(const models::decoder_options& sizes, const config::options& options,
           const models::model& model, serving_fit& fit) {
  const auto packed = models::estimate_packed_weights(model.spec, *model.weights);
  const auto& placed = sizes.offload;
  fit.streamed = placed.streams_weights();
  if (!fit.streamed) {
    fit.device_bytes = packed.all();
    fit.memory.weights = static_cast<double>(packed.all());
    return;
  }
  offload::placement_room room;
  room.weights = packed;
  room.n_layers = model.spec.n_layers;
  room.sep_layer = placed.sep_layer;
  const std::int64_t kept = packed.matrices() * placed.weights.device / 100;
  fit.device_bytes = packed.small + kept;
  const bool no_disk = placed.weights.device + placed.weights.host == 100;
  fit.host_bytes =
      no_disk ? packed.matrices() - kept : packed.matrices() * placed.weights.host / 100;
  fit.disk_bytes = packed.matrices() - kept - fit.host_bytes;
  fit.memory.weights =
      static_cast<double>(kept + offload::least_device_bytes(room, placed.ring_layers));
  std::error_code failed;
  fit.disk_folder =
      options.offload.dir.empty() ? fs::temp_directory_path(failed).string() : options.offload.dir;
}

std::string share_text(std::int64_t bytes, std::int64_t all, const std::string& where) {
  const auto percent = static_cast<long>(100.0 * static_cast<double>(bytes) /
                                             static_cast<double>(std::max<std::int64_t>(all, 1)) +
                                         0.5);
  return std::to_string(percent) + " % of the weights (" + format_bytes(bytes) + ") " + where;
}

std::string streamed_text(const serving_fit& fit) {
  const std::int64_t all = fit.device_bytes + fit.host_bytes + fit.disk_bytes;
  std::string text = "streamed: " + share_text(fit.device_bytes, all, "stay in device memory");
  if (fit.host_bytes > 0)
    text += ", " + share_text(fit.host_bytes, all, "come from host memory in each step");
  if (fit.disk_bytes <= 0) return text;
  text += ", " + share_text(fit.disk_bytes, all, "from the disk of " + fit.disk_folder);
  std::error_code failed;
  const auto free = fs::space(fit.disk_folder, failed).available;
  if (!failed && static_cast<std::int64_t>(free) < fit.disk_bytes)
    text += ", which has only " + format_bytes(static_cast<std::int64_t>(free)) +
            " free: name a folder with room by `offload.dir`";
  return text;
}

std::string planned_speed(const offload::planned_serving& plan, const config::options& options) {
  const auto& on = plan.machine;
  std::string bound = "the compute";
  if (plan.bound == offload::offload_resource::disk_read)
    bound = "the disk, which reads " + gb_per_s(on.disk_read_bytes_per_s);
  if (plan.bound == offload::offload_resource::h2d)
    bound = "copies from host memory at " + gb_per_s(on.h2d_bytes_per_s);
  std::string speed = "about " + tokens_per_s(plan.alone_tokens_per_s) + " with one request";
  if (plan.n_sequences > 1)
    speed += ", " + tokens_per_s(plan.tokens_per_s) + " with " + std::to_string(plan.n_sequences) +
             " at once";
  return speed + " (of " + std::to_string(options.offload.typical_prompt_tokens) + " + " +
         std::to_string(options.offload.typical_output_tokens) + " tokens), bound by " + bound +
         "; from the daemon's plan and speeds measured " +
         (plan.remembered ? "by an earlier run" : "now");
}

/// The upper bound on the speed that follows from the time in which the streamed weights of one
/// token are transferred. Transfers from several tiers overlap with each other and with the
/// computation, so the slowest of them counts.
std::string measured_speed(const serving_fit& fit, gpu::device& dev, const std::string& path) {
  const auto link = fit.host_bytes > 0 ? measure_link(dev) : std::nullopt;
  const auto disk = fit.disk_bytes > 0 ? measure_disk(weights_file(path), 128 * mib) : std::nullopt;
  if (fit.host_bytes > 0 && !link)
    return "not estimated: `device.memory` has no room to measure copies from host memory";
  if (fit.disk_bytes > 0 && !disk)
    return "not estimated: no weights are here to measure the disk by; `twill doctor` measures "
           "more";
  double seconds = 0;
  std::string from;
  const auto add = [&](std::int64_t bytes, double rate, const std::string& what) {
    seconds = std::max(seconds, static_cast<double>(bytes) / rate);
    from += (from.empty() ? "" : " and ") + what + " at " + gb_per_s(rate);
  };
  if (link) add(fit.host_bytes, link->upload, format_bytes(fit.host_bytes) + " from host memory");
  if (disk)
    add(fit.disk_bytes, disk->cold,
        format_bytes(fit.disk_bytes) + " from the disk, measured by the model's file,");
  return "at most about " + tokens_per_s(1 / std::max(seconds, 1e-9)) +
         " with one request: each token takes " + from;
}

} // namespace

serving_fit fit_for_serving(gpu::device& dev, const models::model& model,
                            const models::compute_choice& types, const config::options& options,
                            offload::measuring when) {
  serving_fit fit;
  const actors::model_on_device load{
      options, dev, model, types, actors::usable_bytes(dev), options.kv.host_memory_bytes, when};
  const auto sized = actors::size_decoder(load);
  if (!sized.ok()) {
    fit.refused = sized.detail();
    return fit;
  }
  const models::decoder_options& sizes = sized.value().options;
  place(sizes, options, model, fit);
  fit.kv_tokens = std::int64_t{sizes.n_blocks} * sizes.block_tokens;
  fit.context_tokens = models::estimate_footprint(model, types, options).context_tokens;
  fit.memory.kv = static_cast<double>(sizes.n_blocks) *
                  static_cast<double>(models::decoder::block_bytes(model.spec, sizes));
  fit.memory.reserved =
      fit.memory.weights + fit.memory.kv + static_cast<double>(load.workspace_bytes(sizes));
  fit.memory.touched = dev.memory_is_host() ? fit.memory.weights : fit.memory.reserved;
  fit.plan = sized.value().plan;
  return fit;
}

std::vector<std::pair<std::string, std::string>> fit_rows(const serving_fit& fit, gpu::device& dev,
                                                          const config::options& options) {
  std::vector<std::pair<std::string, std::string>> rows;
  if (!fit.refused.empty()) {
    rows.emplace_back("fits", "no, not even streamed: " + fit.refused);
    return rows;
  }
  rows.emplace_back("a daemon would take", "about " + memory_text(fit.memory) + " at the start");
  rows.emplace_back("",
                    "KV for " + std::to_string(fit.kv_tokens) + " tokens of all requests" +
                        (fit.kv_tokens < fit.context_tokens
                             ? ", fewer than the context's " + std::to_string(fit.context_tokens) +
                                   ": longer requests are refused"
                             : ""));
  rows.emplace_back("fits",
                    fit.streamed ? streamed_text(fit) : "yes: all weights stay in device memory");
  if (!fit.streamed) return rows;
  rows.emplace_back("speed", fit.plan ? planned_speed(*fit.plan, options)
                                      : measured_speed(fit, dev, options.model.path));
  return rows;
}

} // namespace twill::tools
