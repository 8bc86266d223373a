// However much memory there is and whatever the options ask for, the parts into which the device's
// memory is divided fit into it, and more memory never leaves less for KV.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "actors/executor/decoder_sizing.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "models/decoder/decoder.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/model.hpp"
#include "models/offload/choose_placement.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::actors;
using namespace twill::test;

namespace {

class fixture {
public:
  fixture() {
    auto opened = models::open_model("dummy:opt-125m?layers=4&vocab=1000", "");
    if (!opened.ok()) throw std::runtime_error(opened.detail());
    model_ = std::move(opened).value();
    weights_ = models::estimate_packed_weights(model_->spec, *model_->weights);
  }

  void apply(const operation& op) {
    config::options options;
    options.kv.block_tokens = 16;
    options.scheduler.max_running = static_cast<std::int32_t>(1 + op.a % 8);
    options.scheduler.max_step_tokens = static_cast<std::int32_t>(op.a / 8 % 2 == 0 ? 64 : 4);
    options.scheduler.max_context_tokens = static_cast<std::int32_t>(64 << op.b % 5);
    options.offload.io_threads = 61; // speeds for so many threads are unknown: nothing is planned
    // All sizes are multiples of a 64th of the weights.
    const std::int64_t part = weights_.all() / 64;
    options.kv.memory_bytes = op.b / 5 % 3 == 0 ? part * (op.b / 15 % 40) : 0;
    options.offload.host_memory_bytes = part * (op.b / 600 % 100);
    const std::int64_t available = part * (16 + op.c % 128);
    const auto less = size(options, available), more = size(options, available + 16 * part);
    if (!less) return;
    demand(more.has_value(), "what fits into less memory fits into more");
    const bool streams = more->options.offload.streams_weights();
    demand(less->options.offload.streams_weights() || !streams,
           "weights are streamed although less memory holds them");
    if (streams == less->options.offload.streams_weights())
      demand(more->options.n_blocks >= less->options.n_blocks, "more memory leaves less for KV");
    const auto &placed = more->options.offload.weights, &before = less->options.offload.weights;
    if (streams && more->options.n_blocks == less->options.n_blocks)
      demand(placed.device >= before.device, "more memory leaves less for weights");
  }

private:
  std::optional<decoder_size> size(const config::options& options, std::int64_t available) {
    const auto types =
        models::resolve_compute("f32", "f32", model_->spec, *model_->weights, device_->info());
    model_on_device load{options, *device_, *model_, types.value(), available, 0};
    load.measure = models::offload::measuring::never;
    auto sized = size_decoder(load);
    if (!sized.ok()) return std::nullopt;
    check(load, sized.value());
    return std::move(sized).value();
  }

  void check(const model_on_device& load, const decoder_size& sized) {
    const auto& got = sized.options;
    const std::int64_t kv = got.n_blocks * models::decoder::block_bytes(model_->spec, got);
    const auto& placed = got.offload.weights;
    demand(kv > 0, "there is room for KV");
    demand(load.options.kv.memory_bytes == 0 || kv <= load.options.kv.memory_bytes,
           "KV takes more than was asked for");
    const std::int64_t most_blocks =
        got.max_sequences * ((got.max_context_tokens + got.block_tokens - 1) / got.block_tokens);
    demand(got.n_blocks <= most_blocks, "KV takes more than sequences can use");
    std::int64_t all = kv + load.workspace_bytes(got);
    if (!got.offload.streams_weights()) {
      all += weights_.all();
    } else {
      demand(placed.device >= 0 && placed.host >= 0 && placed.device + placed.host <= 100,
             "the parts of the weights are parts of them");
      models::offload::placement_room room;
      room.weights = weights_;
      room.n_layers = model_->spec.n_layers;
      room.sep_layer = load.options.offload.sep_layer;
      all += models::offload::least_device_bytes(room, got.offload.ring_layers) +
             weights_.matrices() * placed.device / 100;
      demand(weights_.matrices() * placed.host / 100 <= load.options.offload.host_memory_bytes ||
                 load.options.offload.host_memory_bytes == 0,
             "weights take more host memory than they may");
    }
    demand(all <= load.available_bytes, "the parts take " + std::to_string(all) + " of " +
                                            std::to_string(load.available_bytes) + " bytes");
  }

  std::shared_ptr<const models::model> model_;
  std::unique_ptr<gpu::device> device_ = gpu::device::open({.kind = "host", .threads = 1}).value();
  decltype(models::estimate_packed_weights(model_->spec, *model_->weights)) weights_{};
};

} // namespace

TEST_CASE("the parts of a device's memory are within the whole, and grow with it") {
  fixture all;
  log::configure(log::level::off); // otherwise each case logs what is streamed
  CHECK(first_failure({.cases = 60, .long_cases = 5000, .most_operations = 10},
                      [&](const operations& sequence) {
                        for (const operation& op : sequence)
                          all.apply(op);
                      }) == "");
  log::configure(log::level::info);
}
