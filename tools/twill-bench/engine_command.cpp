#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gpu/sampling/sample.hpp"
#include "models/compute.hpp"
#include "models/decoder/decoder.hpp"
#include "models/model.hpp"
#include "tools/common/hub/model_argument.hpp"
#include "tools/twill-bench/commands.hpp"
#include "tools/twill-bench/kernels/device_memory.hpp"

namespace twill::bench {

namespace {

using clock = std::chrono::steady_clock;
using ids = std::vector<std::int32_t>;

struct engine_arguments {
  gpu::device_config device;
  std::string model, compute = "auto", kv_type = "auto";
  std::int32_t at_once = 1, input = 128, output = 128, step_tokens = 512, runs = 3;
};

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// Sequences of the same length, which are prefilled one after the other and then decoded together.
class offline_batch {
public:
  offline_batch(const engine_arguments& a)
      : a_(a), dev_(value_of(gpu::device::open(a.device))),
        model_(value_of(models::open_model(tools::hub::local_model(a.model)))),
        blocks_((a.input + a.output + block_tokens - 1) / block_tokens) {
    const auto choice = value_of(models::resolve_compute(a.compute, a.kv_type, model_->spec,
                                                         *model_->weights, dev_->info()));
    models::decoder_options o;
    o.compute = choice.compute;
    o.kv_type = choice.kv_type;
    o.block_tokens = block_tokens;
    o.n_blocks = a.at_once * blocks_;
    o.max_step_tokens = std::max(a.step_tokens, a.at_once);
    o.max_sequences = o.max_logit_rows = a.at_once;
    const auto weights =
        models::weights_for(o.compute, model_->spec, model_->weights, dev_->info());
    decoder_ = value_of(models::decoder::load(*dev_, model_->spec, *weights, o, {}));
    chosen_ = value_of(dev_->allocate(static_cast<std::size_t>(a.at_once) * 4, "bench"));
    std::printf("device: %s, %s, %d threads, %s; %s, compute %s, KV %s\n",
                dev_->info().kind.c_str(), dev_->info().name.c_str(), dev_->info().threads,
                dev_->info().isa.c_str(), model_->quantization.c_str(), gpu::name_of(o.compute),
                gpu::name_of(o.kv_type));
    for (std::int32_t b = 0; b < o.n_blocks; ++b)
      table_.push_back(b);
    std::shuffle(table_.begin(), table_.end(), std::mt19937(1));
  }

  /// Prefills all prompts, which also chooses the first output tokens. Returns the seconds it took.
  double prefill() {
    std::mt19937 random(2);
    std::uniform_int_distribution<std::int32_t> any(0, model_->spec.vocab_size - 1);
    ids prompt(static_cast<std::size_t>(a_.input));
    next_.clear();
    const auto start = clock::now();
    for (std::int32_t s = 0; s < a_.at_once; ++s) {
      for (std::int32_t& id : prompt)
        id = any(random);
      for (std::int32_t at = 0; at < a_.input; at += a_.step_tokens)
        prefill_chunk(s, prompt, at, std::min(a_.input, at + a_.step_tokens));
    }
    return seconds_since(start);
  }

  /// Decodes the remaining output tokens of all sequences. Each step takes its input tokens from
  /// the previous step's output on the device. Returns the seconds it took.
  double decode() {
    const auto n = static_cast<std::size_t>(a_.at_once);
    auto* chosen = static_cast<std::int32_t*>(chosen_.data());
    models::step_batch input = batch_of(ids(n), ids(n), ids(n + 1), ids(n), table_, ids(n));
    std::iota(input.first_token.begin(), input.first_token.end(), 0);
    std::iota(input.logit_rows.begin(), input.logit_rows.end(), 0);
    input.fed_from = input.logit_rows;
    models::step_payload payload;
    payload.drawn = chosen;
    const auto start = clock::now();
    dev_->upload(chosen, next_.data(), n * sizeof(std::int32_t));
    for (std::int32_t t = 0; t + 1 < a_.output; ++t) {
      std::fill(input.positions.begin(), input.positions.end(), a_.input + t);
      std::fill(input.kv_lengths.begin(), input.kv_lengths.end(), a_.input + t + 1);
      gpu::argmax(*dev_, decoder_->forward(input, payload).value(), chosen); // cannot fail
    }
    dev_->fence();
    return seconds_since(start);
  }

private:
  static constexpr std::int32_t block_tokens = 16;

  void prefill_chunk(std::int32_t sequence, const ids& prompt, std::int32_t from,
                     std::int32_t end) {
    const ids tokens(prompt.begin() + from, prompt.begin() + end);
    ids positions;
    for (std::int32_t p = from; p < end; ++p)
      positions.push_back(p);
    ids rows;
    if (end == a_.input) rows.push_back(end - from - 1);
    const auto blocks = table_.begin() + std::ptrdiff_t{sequence} * blocks_;
    const ids chosen =
        step(batch_of(tokens, positions, {0, end - from}, {end}, {blocks, blocks + blocks_}, rows));
    next_.insert(next_.end(), chosen.begin(), chosen.end());
  }

  models::step_batch batch_of(ids tokens, ids positions, ids first, ids lengths, ids table,
                              ids rows) const {
    models::step_batch input;
    input.prompt_lengths.assign(lengths.size(), a_.input);
    input.tokens = std::move(tokens);
    input.positions = std::move(positions);
    input.first_token = std::move(first);
    input.kv_lengths = std::move(lengths);
    input.block_table = std::move(table);
    input.max_blocks = blocks_;
    input.logit_rows = std::move(rows);
    return input;
  }

  /// Runs one step and returns the most likely token of each wanted row.
  ids step(const models::step_batch& input) {
    const gpu::tensor_ref logits =
        decoder_->forward(input).value(); // resident weights: cannot fail
    ids chosen(input.logit_rows.size());
    if (!chosen.empty()) {
      gpu::argmax(*dev_, logits, static_cast<std::int32_t*>(chosen_.data()));
      dev_->download(chosen.data(), chosen_.data(), chosen.size() * 4);
    }
    return chosen;
  }

  const engine_arguments& a_;
  std::unique_ptr<gpu::device> dev_;
  std::shared_ptr<const models::model> model_;
  std::int32_t blocks_; ///< of one sequence
  std::unique_ptr<models::decoder> decoder_;
  gpu::buffer chosen_;
  ids table_, next_;
};

int run(const engine_arguments& a) {
  offline_batch batch(a);
  std::printf("%d at once, %d tokens in, %d out\n", a.at_once, a.input, a.output);
  for (std::int32_t i = 0; i < a.runs; ++i) {
    const double in = batch.prefill();
    const double out = batch.decode();
    const double n = a.at_once;
    std::printf("prefill %8.1f tokens/s  decode %8.1f tokens/s  output over all %8.1f tokens/s\n",
                n * a.input / in, out > 0 ? n * (a.output - 1) / out : 0.0,
                n * a.output / (in + out));
    std::fflush(stdout);
  }
  return 0;
}

} // namespace

void add_engine_command(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<engine_arguments>();
  CLI::App* command =
      app.add_subcommand("engine", "Times a model in this process: it computes prompts of random "
                                   "tokens, then decodes all of them together, greedily.");
  command
      ->add_option("--model", a->model,
                   "The model: a file, a folder, dummy:PRESET, or hf:ORG/NAME of the cache.")
      ->required();
  command->add_option("--compute", a->compute,
                      "The compute type: auto, f32, f16, bf16, int8 or w8a8.");
  command->add_option("--kv-type", a->kv_type, "The type of KV: auto, f32, f16, bf16 or int8.");
  command->add_option("--device", a->device.kind,
                      "Where to compute: auto, host or cuda. A GPU that is asked for and missing "
                      "is an error.");
  command->add_option("--threads", a->device.threads,
                      "The number of compute threads; 0 means one per core.");
  command->add_option("--isa", a->device.isa, "The widest instruction set that may be used.");
  command->add_option("--at-once", a->at_once, "The number of sequences that are decoded together.")
      ->check(CLI::Range(1, 1024));
  command->add_option("--input-len", a->input, "The number of tokens of each prompt.")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--output-len", a->output, "The number of tokens that each sequence generates.")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--step-tokens", a->step_tokens, "The most tokens of one prefill step.")
      ->check(CLI::Range(1, 65536));
  command->add_option("--runs", a->runs, "The number of times that the measurement is repeated.")
      ->check(CLI::Range(1, 1000));
  command->callback([a, &exit_code] { exit_code = run(*a); });
}

} // namespace twill::bench
