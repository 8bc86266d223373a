// `twill offload`: runs an offline job with FlexGen's block schedules on a model that may be larger
// than the device's memory. Flags and report are those of FlexGen.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "gpu/attention/kv4.hpp"
#include "gpu/machine.hpp"
#include "models/compute.hpp"
#include "models/memory_estimate/job_memory.hpp"
#include "models/model.hpp"
#include "models/offload/choose_placement.hpp"
#include "models/offload/int4_weights.hpp"
#include "models/offload/job/offload_job.hpp"
#include "models/offload/model_shape.hpp"
#include "models/offload/plan/plan_memory.hpp"
#include "models/offload/plan/serving_plan.hpp"
#include "tools/common/http_client.hpp"
#include "tools/common/hub/model_argument.hpp"
#include "tools/common/progress_bar.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"
#include "tools/twill/interrupt.hpp"
#include "tools/twill/must.hpp"
#include "tools/twill/offload/draw_timeline.hpp"
#include "tools/twill/offload/flags.hpp"
#include "tools/twill/offload/plan.hpp"
#include "tools/twill/offload/prompts.hpp"
#include "tools/twill/offload/report.hpp"

namespace twill::tools {
namespace {

/// One run of `twill offload`, from loading the model to the report.
class offload_command {
public:
  explicit offload_command(const offload_flags& flags)
      : flags_(flags), options_(options_of(flags)) {
    log::configure(*log::level_named(options_.log.level));
  }

  int run() {
    model_ = must(models::open_model(hub::local_model(flags_.model))).value();
    weights_ = model_->weights;
    const auto& names = model_->spec.names;
    if (flags_.compress_weight)
      weights_ = models::offload::int4_weights(weights_, {names.positions});
    device_ = std::move(must(gpu::device::open({options_.device.kind, options_.device.threads,
                                                options_.device.memory_bytes, options_.device.id}))
                            .value());
    types_ = must(models::resolve_compute(options_.model.compute, options_.kv.type, model_->spec,
                                          *model_->weights, device_->info()))
                 .value();
    weights_ = models::weights_for(types_.compute, model_->spec, weights_, device_->info());
    if (flags_.plan || flags_.plan_only) {
      flags_ = planned(flags_, *device_, model_->spec, *weights_, options_);
      options_ = options_of(flags_);
    }
    if (flags_.plan_only) return status_ok;
    read_prompts_of_flags();
    describe_run();
    print_plan();
    load();
    if (flags_.prompts.empty()) warm_up();
    return benchmark();
  }

private:
  void read_prompts_of_flags() {
    const std::int32_t new_tokens = flags_.cut_gen_len > 0 ? flags_.cut_gen_len : flags_.gen_len;
    prompts_ = flags_.prompts.empty()
                   ? make_prompts(*model_->text,
                                  std::int64_t{flags_.gpu_batch_size} * flags_.num_gpu_batches,
                                  flags_.prompt_len, new_tokens)
                   : read_prompts(flags_.prompts, *model_->text, flags_.gen_len);
    const std::int32_t most = model_->spec.most_positions;
    for (const auto& p : prompts_)
      if (most > 0 && static_cast<std::int32_t>(p.ids.size()) + p.max_new > most)
        throw client_error("a prompt and its output must be at most " + std::to_string(most) +
                           " tokens long, got " + std::to_string(p.ids.size()) + " + " +
                           std::to_string(p.max_new));
  }

  void describe_run() {
    run_.mode = mode_of(flags_);
    run_.batch_size = flags_.gpu_batch_size;
    run_.n_batches = flags_.num_gpu_batches;
    run_.stagger = stagger();
    run_.step_tokens = options_.scheduler.max_step_tokens > 0
                           ? options_.scheduler.max_step_tokens
                           : models::offload::default_step_tokens;
    run_.step_tokens = models::offload::step_tokens_for(prompts_, run_);
    if (!flags_.ignore_eos && !flags_.prompts.empty()) run_.end_ids = model_->text->end_ids();
    run_.stop = [] { return interrupts() > 0; };
    if (!flags_.timeline.empty()) run_.timeline = &timeline_;
    needs_ = models::offload::needs_of(prompts_, run_, options_.kv.block_tokens);
    decoding_.compute = types_.compute;
    decoding_.kv_type = types_.kv_type;
    decoding_.block_tokens = options_.kv.block_tokens;
    decoding_.n_blocks = needs_.n_blocks;
    decoding_.max_context_tokens = needs_.max_context_tokens;
    decoding_.max_step_tokens = needs_.max_step_tokens;
    decoding_.max_sequences = needs_.max_sequences;
    decoding_.max_logit_rows = needs_.max_logit_rows;
    decoding_.touch_kv = true; // the schedule uses all of the reserved KV memory at its peak
    run_.kv = {flags_.percent[2], flags_.percent[3]};
    run_.hidden = {flags_.percent[4], flags_.percent[5]};
    run_.four_bit_kv = flags_.compress_cache;
    run_.attend_on_host = flags_.cpu_cache_compute;
    if (run_.four_bit_kv) check_four_bits();
    if (run_.kv.device < 100)
      decoding_.kv_staged = models::offload::kv_stream::staged_layers(
          models::offload::kv_options_of(model_->spec, decoding_, prompts_, run_));
    // estimate_job_memory() includes these buffers
    decoding_.offload.kv_buffers = options_.offload.kv_buffers;
    room_.weights = models::estimate_packed_weights(model_->spec, *weights_);
    room_.n_layers = model_->spec.n_layers;
    room_.sep_layer = options_.offload.sep_layer;
    const auto rest = memory();
    room_.device_bytes = device_->info().memory_bytes - rest.kv - rest.activations;
    room_.host_bytes = options_.offload.host_memory_bytes > 0 ? options_.offload.host_memory_bytes
                                                              : gpu::machine::available_bytes();
    decoding_.offload = must(models::offload::choose_placement(options_, room_)).value();
    if (flags_.overlap == "false") decoding_.offload.ring_layers = decoding_.offload.kv_buffers = 1;
    memory_ = memory();
  }

  models::job_memory memory() const {
    return models::estimate_job_memory(*device_, model_->spec, *weights_, room_.weights, decoding_,
                                       prompts_, run_);
  }

  /// The value of `--stagger`, or its default. In FlexGen's diagonal block schedule, the stagger is
  /// the number of rounds (sweeps over all layers) from the start of one micro-batch to the start
  /// of the next. If all weights are on the device, the default spreads the micro-batches evenly
  /// over time, which needs the least KV memory. If weights are streamed, each round transfers them
  /// once, so the default is 1, which takes the fewest rounds.
  std::int32_t stagger() const {
    if (flags_.stagger > 0) return flags_.stagger;
    return flags_.percent[0] < 100
               ? 1
               : models::offload::even_stagger(flags_.gen_len, flags_.num_gpu_batches);
  }

  void check_four_bits() const {
    gpu::kv_layer shape;
    shape.type = decoding_.kv_type;
    shape.head_dim = model_->spec.head_dim;
    if (!gpu::has_kv4(shape))
      throw client_error(
          std::string("`--compress-cache` needs KV of f32, f16 or bf16 and heads of even "
                      "size, got ") +
          gpu::name_of(shape.type) + " and heads of " + std::to_string(shape.head_dim));
  }

  void print_plan() {
    const auto prompt_len = static_cast<std::int32_t>(prompts_.front().ids.size());
    sizes_ = models::offload::sizes_of(
        models::offload::model_shape(model_->spec, decoding_.kv_type, room_.weights), prompt_len,
        flags_.gen_len, static_cast<std::int64_t>(prompts_.size()));
    std::printf("%s\n", models::offload::text_of(sizes_).c_str());
    if (flags_.verbose < 1) return;
    std::printf("%s, %s compute, %s KV, %d threads, %zu prompts as %d x %d, %s\n",
                printable(model_->name).c_str(), gpu::name_of(decoding_.compute),
                gpu::name_of(decoding_.kv_type), device_->info().threads, prompts_.size(),
                run_.batch_size, run_.n_batches, name_of(run_.mode));
    std::printf("%s%s\n", models::offload::describe(decoding_.offload, room_).c_str(),
                flags_.compress_weight ? ", compressed to 4 bits" : "");
    if (run_.kv.device < 100)
      std::printf("KV of layers: %d %% device, %d %% host%s, %d %% disk%s\n", run_.kv.device,
                  run_.kv.host, run_.attend_on_host ? " (attended there)" : "",
                  100 - run_.kv.device - run_.kv.host,
                  run_.four_bit_kv ? ", in 4 bits off the device" : "");
    if (run_.hidden.device < 100)
      std::printf(
          "activations of micro-batches between tasks: %d %% device, %d %% host, %d %% disk\n",
          run_.hidden.device, run_.hidden.host, 100 - run_.hidden.device - run_.hidden.host);
    std::printf("device memory: %s weights, %s ring, %s KV, %s activations: %s projected\n",
                format_bytes(memory_.weights).c_str(), format_bytes(memory_.ring).c_str(),
                format_bytes(memory_.kv).c_str(), format_bytes(memory_.activations).c_str(),
                format_bytes(memory_.all()).c_str());
  }

  void load() {
    std::printf("init weight...\n");
    std::fflush(stdout);
    progress_bar bar(false);
    auto loaded =
        models::decoder::load(*device_, model_->spec, *weights_, decoding_, [&](double share) {
          const auto total = room_.weights.all();
          bar.show(static_cast<std::int64_t>(share * static_cast<double>(total)), total);
        });
    bar.finish(loaded.ok());
    decoder_ = std::move(must(std::move(loaded)).value());
  }

  /// Runs FlexGen's warm-up: short prompts and one token.
  void warm_up() {
    std::printf("warmup - generate\n");
    std::fflush(stdout);
    auto prompts = prompts_;
    for (auto& p : prompts) {
      p.ids.resize(std::min<std::size_t>(p.ids.size(), 32));
      p.max_new = 1;
    }
    models::offload::job_options run = run_;
    run.timeline = nullptr;
    const auto warmed =
        must(models::offload::run_offload_job(*device_, *decoder_, decoding_, prompts, run))
            .value();
    if (!warmed.error.empty()) throw client_error(warmed.error);
  }

  int benchmark() {
    std::printf("benchmark - generate\n");
    std::fflush(stdout);
    progress_bar bar(false);
    run_.progress = [&](std::int64_t done, std::int64_t total) { bar.show(done, total); };
    const auto before = moved();
    const auto ran =
        must(models::offload::run_offload_job(*device_, *decoder_, decoding_, prompts_, run_))
            .value();
    bar.finish(ran.error.empty());
    print_outputs(ran);
    if (!flags_.output.empty()) write_outputs(flags_.output, *model_->text, ran.outputs);
    if (!flags_.timeline.empty())
      draw_run(flags_.timeline,
               model_->name + ", " + name_of(run_.mode) +
                   (decoding_.offload.sep_layer ? ", layers are attention and MLP in turn" : "") +
                   (options_.device.link_gbps > 0 ? ", simulated link" : ""),
               timeline_);
    if (!flags_.rounds.empty()) write_rounds(flags_.rounds, ran);
    report(ran, before);
    if (!ran.error.empty()) throw client_error(ran.error);
    return ran.stopped ? status_interrupted : status_ok;
  }

  models::offload::ring_stats moved() const {
    return decoder_->stream() == nullptr ? models::offload::ring_stats{}
                                         : decoder_->stream()->stats();
  }

  void print_outputs(const models::offload::job_report& ran) const {
    if (flags_.verbose < 2) return;
    std::printf("Outputs:\n");
    for (const std::size_t i : {std::size_t{0}, ran.outputs.size() - 1})
      std::printf("%zu: %s\n", i,
                  printable(model_->text->decode(ran.outputs[i].ids, true)).c_str());
  }

  void report(const models::offload::job_report& ran,
              const models::offload::ring_stats& before) const {
    offload_measured m = measure(ran, flags_.cut_gen_len, flags_.gen_len);
    m.sizes = sizes_;
    m.memory_projected = memory_.all();
    m.memory_measured = device_->memory_peak();
    m.kv_moved = ran.kv_moved;
    m.hidden_moved = ran.hidden_moved;
    m.moved = moved();
    m.moved.disk_bytes -= before.disk_bytes;
    m.moved.host_bytes -= before.host_bytes;
    m.moved.waited_seconds -= before.waited_seconds;
    if (options_.device.link_gbps > 0)
      m.simulated = "a link of " + std::to_string(options_.device.link_gbps) +
                    " GB/s to the device (device.link_gbps)";
    std::string text = report_text(m);
    if (!flags_.debug_mode.empty()) text += breakdown_text(m, ran);
    if (ran.stopped) text += "interrupted: outputs are partial\n";
    std::fputs(text.c_str(), stdout);
    if (flags_.log_file.empty() || flags_.no_log) return;
    std::ofstream log(flags_.log_file, std::ios::app);
    log << text;
    if (!log.flush())
      throw client_error("`--log-file` must be a file that can be written, got " + flags_.log_file);
  }

  offload_flags flags_;
  config::options options_;
  std::shared_ptr<const models::model> model_;
  models::compute_choice types_;
  std::shared_ptr<const models::checkpoint>
      weights_; ///< the model's weights, or a copy quantised to 4 or 8 bits
  std::unique_ptr<gpu::device> device_;
  std::vector<models::offload::job_prompt> prompts_;
  models::offload::job_options run_;
  models::offload::job_needs needs_;
  models::decoder_options decoding_;
  models::offload::placement_room room_;
  models::job_memory memory_;
  models::offload::offload_sizes sizes_;
  models::offload::span_recorder timeline_;
  std::unique_ptr<models::decoder> decoder_; // declared last, because it uses the device and the
                                             // timeline
};

} // namespace

void add_offload(CLI::App& root, int& status) {
  auto* command = root.add_subcommand("offload", "Runs prompts through a model that may be larger "
                                                 "than the device, with the flags of FlexGen.");
  auto flags = std::make_shared<offload_flags>();
  add_flags(*command, *flags);
  command->callback([command, flags, &status] {
    const auto given = [&](const char* flag) { return command->count(flag) > 0; };
    flags->fixed_percent = given("--percent");
    flags->fixed_order = given("--search-order");
    flags->fixed_batch = given("--gpu-batch-size");
    flags->fixed_batches = given("--num-gpu-batches");
    check_flags(*flags);
    count_interrupts(true);
    status = offload_command(*flags).run();
  });
}

} // namespace twill::tools
