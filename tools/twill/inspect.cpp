// `twill inspect`: reports what a model path contains, what running the model would take, and what
// would be refused and why. Reads headers and small files only; no weights are loaded.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "config/options.hpp"
#include "gpu/device.hpp"
#include "gpu/machine.hpp"
#include "models/compute.hpp"
#include "models/decoder/check_weights.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/model.hpp"
#include "models/text/template_sources.hpp"
#include "tools/common/hub/fetch_report.hpp"
#include "tools/common/hub/model_argument.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"
#include "tools/twill/daemon_options.hpp"
#include "tools/twill/model_parts.hpp"
#include "tools/twill/serving_fit.hpp"

namespace twill::tools {
namespace {

void heading(const std::string& text) {
  std::printf("%s\n", painted(stream::out, ink::bold, text).c_str());
}

void row(const std::string& name, const std::string& value) {
  std::printf("  %-22s %s\n", name.c_str(), printable(value).c_str());
}

void print_parts(const model_parts& parts) {
  heading("model " + printable(parts.path));
  row("format", parts.format);
  for (const auto& [name, value] : parts.facts)
    row(name, value);
  for (const weight_share& share : parts.weights)
    row("weights " + share.kind,
        std::to_string(share.tensors) + " tensors, " + format_bytes(share.bytes));
}

std::string positions_text(const models::model_spec& spec) {
  const models::rope_rule& rope = spec.rope;
  if (!spec.alibi_slopes.empty()) return "ALiBi";
  if (rope.kind == gpu::rope_kind::none) return "learned";
  return std::string("rotary, ") +
         (rope.kind == gpu::rope_kind::interleaved ? "interleaved" : "half-split") + ", " +
         std::to_string(rope.rotary_dim) + " of " + std::to_string(spec.head_dim) + " dimensions";
}

void print_shapes(const models::model& model) {
  const models::model_spec& spec = model.spec;
  heading("as twill would run it");
  row("name", model.name);
  row("family", spec.family);
  row("layers", std::to_string(spec.n_layers) + " of width " + std::to_string(spec.hidden_size) +
                    ", MLP " + std::to_string(spec.mlp_size));
  row("attention", std::to_string(spec.n_heads) + " heads of " + std::to_string(spec.head_dim) +
                       ", " + std::to_string(spec.n_kv_heads) + " of keys and values");
  row("positions", positions_text(spec));
  if (spec.window > 0) row("sliding window", std::to_string(spec.window) + " tokens");
  row("vocabulary", std::to_string(spec.vocab_size) + (spec.tied_head ? ", tied head" : ""));
  row("context", std::to_string(spec.context_length) + " tokens");
  row("quantization", model.quantization);
  row("tokenizer", model.text->kind() + ", " + std::to_string(model.text->vocab_size()) +
                       " tokens, " + std::to_string(model.text->end_ids().size()) + " end ids");
}

/// The number of bytes available to weights and KV, and the name of that memory.
std::pair<std::string, std::int64_t> budget_of(const gpu::device_info& device) {
  const std::int64_t free = gpu::machine::available_bytes();
  return {device.kind == "host" ? "host memory" : device.kind + " memory",
          device.kind == "host" ? std::min(device.memory_bytes, free) : device.memory_bytes};
}

/// Prints the memory that the model needs. Returns whether a daemon would have enough memory for
/// it.
bool print_memory(models::model model, const models::compute_choice& types, gpu::device& dev,
                  const config::options& options) {
  const models::serving_footprint need = models::estimate_footprint(model, types, options);
  model.weights = models::weights_for(types.compute, model.spec, model.weights, dev.info());
  const serving_fit fit =
      fit_for_serving(dev, model, types, options, models::offload::measuring::never);
  const std::int64_t packed = models::estimate_packed_weights(model.spec, *model.weights).all();
  const auto [name, budget] = budget_of(dev.info());
  heading("memory, " + std::string(gpu::name_of(types.compute)) + " compute, " +
          gpu::name_of(types.kv_type) + " KV");
  row(name, format_bytes(budget) + " for weights and KV" +
                (dev.info().spare_bytes > 0
                     ? ", beside " + format_bytes(dev.info().spare_bytes) + " for CUDA itself"
                     : ""));
  if (!dev.memory_is_host())
    row("host memory", format_bytes(gpu::machine::available_bytes()) + " available");
  row("weights", format_bytes(need.weight_bytes) + " in the file, " + format_bytes(packed) +
                     " as they are packed");
  row("KV per token", format_bytes(need.kv_bytes_per_token));
  for (std::int64_t tokens = 1024;; tokens *= 4) {
    tokens = std::min<std::int64_t>(tokens, need.context_tokens);
    const std::int64_t kv = tokens * need.kv_bytes_per_token;
    row("at " + std::to_string(tokens) + " tokens",
        format_bytes(kv) + " of KV, " + format_bytes(packed + kv) + " in all, " +
            (!fit.refused.empty() || tokens > fit.kv_tokens ? "more than there is room for"
             : fit.streamed                                 ? "fits, with weights streamed"
                                                            : "fits"));
    if (tokens == need.context_tokens) break;
  }
  for (const auto& [what, text] : fit_rows(fit, dev, options))
    row(what, text);
  return fit.refused.empty();
}

/// Prints everything about a model that could be opened, and appends reasons for refusing it to
/// `refused`. Returns whether a daemon would have enough memory for it.
bool print_model(const models::model& model, const model_parts& parts,
                 const config::options& options, std::vector<std::string>& refused) {
  print_shapes(model);
  row("chat template", model.chat == nullptr    ? "none: chat requests are refused"
                       : parts.has_own_template ? "the model's own"
                                                : "the family's known convention");
  for (const models::named_template& other : model.other_chats)
    row("", "\"" + other.name + "\", the model's own" +
                (other.name == models::tool_template_name ? ", for requests with tools" : ""));
  for (models::failure& f : models::check_weights(model.spec, *model.weights))
    refused.push_back(std::move(f.detail));
  const auto device = gpu::device::open({.kind = options.device.kind,
                                         .threads = options.device.threads,
                                         .memory_bytes = options.device.memory_bytes,
                                         .id = options.device.id});
  if (!device.ok()) return refused.push_back(device.detail()), false;
  const auto types = models::resolve_compute(options.model.compute, options.kv.type, model.spec,
                                             *model.weights, device.value()->info());
  if (!types.ok()) return refused.push_back(types.detail()), false;
  return print_memory(model, types.value(), *device.value(), options);
}

/// Whether `reasons` contains the message `detail` already, perhaps without the path at its
/// beginning.
bool is_known(const std::string& detail, const std::vector<std::string>& reasons) {
  return std::any_of(reasons.begin(), reasons.end(),
                     [&](const std::string& reason) { return detail.ends_with(reason); });
}

void print_refused(const std::vector<std::string>& reasons, bool has_room) {
  constexpr std::size_t most_shown = 12;
  heading("refused");
  if (reasons.empty())
    row("nothing", has_room ? "twilld would serve this model"
                            : "twilld would serve this model with more memory");
  for (std::size_t i = 0; i < std::min(reasons.size(), most_shown); ++i)
    std::printf("  %s\n", printable(reasons[i]).c_str());
  if (reasons.size() > most_shown)
    std::printf("  and %zu more reasons\n", reasons.size() - most_shown);
}

int inspect(const std::string& path, const daemon_option_flags& flags,
            const hub::model_preview* of_hub) {
  const config::options options = load_daemon_options(flags, path);
  log::configure(log::level::off); // the daemon's sizing code logs what the rows show
  model_parts parts = read_parts(path);
  if (of_hub != nullptr) parts.path = of_hub->in_words(path);
  print_parts(parts);
  const auto opened = models::open_model(path);
  bool has_room = true;
  if (opened.ok())
    has_room = print_model(*opened.value(), parts, options, parts.refused);
  else if (!is_known(opened.detail(), parts.refused))
    parts.refused.push_back(opened.detail());
  if (of_hub != nullptr)
    for (auto& reason : parts.refused)
      reason = of_hub->in_words(reason);
  print_refused(parts.refused, has_room);
  return parts.refused.empty() ? status_ok : status_failure;
}

/// For a model of Hugging Face's hub only headers are read, whether or not its weights are in the
/// cache.
int run_inspect(const std::string& given, const daemon_option_flags& flags) {
  if (!given.starts_with("hf:")) return inspect(hub::local_model(given), flags, nullptr);
  hub::fetch_report report(
      [](const std::string& line) { std::fprintf(stderr, "%s\n", printable(line).c_str()); });
  const auto model =
      hub::preview(hub::parse_reference(given),
                   {nullptr, [&](const std::string& line) { report.say(line); },
                    [&](std::int64_t done, std::int64_t total) { report.show(done, total); }});
  report.finish();
  return inspect(model->path(), flags, model.get());
}

} // namespace

void add_inspect(CLI::App& root, int& status) {
  auto* command = root.add_subcommand(
      "inspect", "print what a model holds, what it would need, and what would be refused");
  auto path = std::make_shared<std::string>();
  auto flags = std::make_shared<daemon_option_flags>();
  command
      ->add_option("model", *path,
                   "folder, GGUF file, hf:ORG/NAME of Hugging Face's hub, of which "
                   "headers are fetched, or dummy:PRESET")
      ->required();
  add_daemon_option_flags(*command, *flags);
  command->callback([path, flags, &status] { status = run_inspect(*path, *flags); });
}

} // namespace twill::tools
