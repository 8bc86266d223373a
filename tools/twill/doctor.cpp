// `twill doctor`: reports the device, the NVIDIA GPUs, the memory tiers (device, host, disk) with
// measured speeds, the versions, and what a model would need. Each part is measured completely
// before it is printed, so that a slow terminal does not disturb the measurement.
#include <CLI/CLI.hpp>

#include <boost/version.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "gpu/device.hpp"
#include "gpu/machine.hpp"
#include "models/compute.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/model.hpp"
#include "tools/common/default_model.hpp"
#include "tools/common/endpoint.hpp"
#include "tools/common/hub/model_argument.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"
#include "tools/twill/daemon_options.hpp"
#include "tools/twill/measure.hpp"
#include "tools/twill/must.hpp"
#include "tools/twill/nvidia_report.hpp"
#include "tools/twill/serving_fit.hpp"

namespace twill::tools {
namespace {

namespace fs = std::filesystem;

struct doctor_options {
  std::string model;
  daemon_option_flags daemon;
};

void heading(const std::string& text) {
  std::printf("%s\n", painted(stream::out, ink::bold, text).c_str());
}

void row(const char* name, const std::string& value) {
  std::printf("  %-22s %s\n", name, printable(value).c_str());
}

std::string rate(double bytes_per_second) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB/s", bytes_per_second / 1e9);
  return text;
}

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

void print_versions(const gpu::device_info& device) {
  heading("twill " TWILL_VERSION);
  row("compiler", compiler());
  row("kernels", device.backend);
  row("CAF", TWILL_BUILT_WITH_CAF);
  row("Boost", std::to_string(BOOST_VERSION / 100000) + "." +
                   std::to_string(BOOST_VERSION / 100 % 1000) + "." +
                   std::to_string(BOOST_VERSION % 100));
}

void print_device(const gpu::device_info& device) {
  heading("device");
  row("kind", device.kind);
  row("name", device.name);
  row("instructions", device.isa);
  row("compute threads", std::to_string(device.threads));
  row("memory budget", format_bytes(device.memory_bytes));
}

void print_gpus() {
  heading("NVIDIA's GPUs");
  const cuda_build build{.architectures = TWILL_CUDA_ARCHITECTURES, .cuda = TWILL_CUDA_VERSION};
  for (const auto& [name, text] : gpu_rows(ask_nvidia_driver(), build))
    row(name.c_str(), text);
}

void print_tiers(gpu::device& dev, const std::string& model_path) {
  const int threads = dev.info().threads;
  const double one = gpu::machine::read_bandwidth(1);
  const double all = threads > 1 ? gpu::machine::read_bandwidth(threads) : one;
  const auto link = measure_link(dev);
  const std::string file = weights_file(model_path);
  const auto disk = measure_disk(file, 512 * mib);

  heading("tiers, measured");
  row("host memory", format_bytes(gpu::machine::available_bytes()) + " available, read " +
                         rate(one) + " with 1 thread, " + rate(all) + " with " +
                         std::to_string(threads));
  row("host <-> device",
      link.has_value() ? "copy " + rate(link->upload) + " up, " + rate(link->download) + " down"
                       : "the memory budget has no room for a test");
  if (!disk.has_value()) return row("disk", "not measured: no model file to read");
  std::error_code ignored;
  const auto space = fs::space(
      fs::path(file).parent_path().empty() ? fs::path(".") : fs::path(file).parent_path(), ignored);
  row("disk", format_bytes(static_cast<std::int64_t>(space.available)) + " free, read " +
                  rate(disk->cold) + " dropped from the page cache, " + rate(disk->cached) +
                  " from it");
}

void print_model(const std::string& path, config::options options, gpu::device& dev) {
  const gpu::device_info& device = dev.info();
  options.model.path = path;
  const auto opened = models::open_model(path, options.model.chat_template);
  if (!opened.ok()) throw client_error(opened.detail());
  models::model model = *opened.value();
  const auto types = models::resolve_compute(options.model.compute, options.kv.type, model.spec,
                                             *model.weights, device);
  if (!types.ok()) throw client_error(types.detail());
  const auto compute = types.value().compute;
  model.weights = models::weights_for(compute, model.spec, model.weights, device);
  const auto need = models::estimate_footprint(model, types.value(), options);
  // Measures the machine if the plan needs that, before anything is printed.
  const serving_fit fit =
      fit_for_serving(dev, model, types.value(), options, models::offload::measuring::if_unknown);
  const auto rows = fit_rows(fit, dev, options);

  heading("model " + printable(path));
  row("name", model.name);
  row("format", model.format + ", " + model.spec.family + ", mostly " + model.quantization);
  row("weights", format_bytes(need.weight_bytes) +
                     (compute == gpu::compute_type::w8a8 ? " in 8 bits" : " in the file"));
  row("compute type", gpu::name_of(compute));
  row("KV type", gpu::name_of(types.value().kv_type));
  row("KV per token", format_bytes(need.kv_bytes_per_token));
  row("context", std::to_string(need.context_tokens) + " tokens, " +
                     format_bytes(need.kv_bytes_per_sequence) + " of KV");
  for (const auto& [name, text] : rows)
    row(name.c_str(), text);
}

int run_doctor(const doctor_options& given) {
  const auto options = load_daemon_options(given.daemon, given.model);
  std::string path = hub::local_model(options.model.path);
  if (const auto standard = default_model_path(); path.empty() && standard.ok())
    if (fs::exists(standard.value())) path = standard.value();
  // A model that cannot be served is reported before time is spent on measuring.
  if (!path.empty()) (void)must(models::open_model(path, options.model.chat_template));

  gpu::device_config wanted;
  wanted.kind = options.device.kind;
  wanted.threads = options.device.threads;
  wanted.memory_bytes = options.device.memory_bytes;
  wanted.id = options.device.id;
  auto opened = gpu::device::open(wanted);
  if (!opened.ok()) {
    print_gpus(); // they show why the device cannot be opened
    throw client_error(opened.detail());
  }
  auto& dev = *opened.value();

  log::configure(log::level::off); // the daemon's sizing code logs what the rows below show
  print_versions(dev.info());
  print_device(dev.info());
  print_gpus();
  print_tiers(dev, path);
  if (path.empty()) {
    heading("model");
    row("none", "give --model PATH, or run `twill default-model`");
  } else {
    print_model(path, options, dev);
  }
  return status_ok;
}

} // namespace

void add_doctor(CLI::App& root, int& status) {
  auto* command = root.add_subcommand(
      "doctor", "print devices, GPUs, measured tiers, versions, and what a model would need");
  auto options = std::make_shared<doctor_options>();
  command
      ->add_option(
          "--model", options->model,
          "GGUF file, Hugging Face folder, hf:ORG/NAME or dummy:PRESET; default: the default model")
      ->type_name("PATH");
  add_daemon_option_flags(*command, options->daemon);
  command->callback([options, &status] { status = run_doctor(*options); });
}

} // namespace twill::tools
