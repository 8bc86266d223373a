#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "gpu/launch_timer.hpp"
#include "gpu/peak_rates.hpp"
#include "tools/twill-bench/commands.hpp"
#include "tools/twill-bench/kernels/cases.hpp"
#include "tools/twill-bench/kernels/device_memory.hpp"
#include "tools/twill-bench/kernels/json_lines.hpp"
#include "tools/twill-bench/kernels/paper/cells.hpp"
#include "tools/twill-bench/kernels/paper/report.hpp"
#include "tools/twill-bench/kernels/report.hpp"

namespace twill::bench {

namespace {

struct kernels_arguments {
  gpu::device_config device;
  kernel_selection selection;
  std::string json_path;
  double seconds = 0.3;
  bool no_graphs = false;
  bool paper = false;
};

int run(kernels_arguments arguments) {
  if (arguments.paper) {
    json_lines lines(arguments.json_path);
    paper::report(lines);
    paper::report_cells(lines);
    return 0;
  }
  const auto dev = value_of(gpu::device::open(arguments.device));
  kernel_report report(arguments.json_path);
  const gpu::memory_probe probe = value_of(gpu::memory_probe::make(*dev));
  ceilings limits;
  limits.read_bytes_per_s = probe.read_bytes_per_s();
  limits.copy_bytes_per_s = probe.copy_bytes_per_s();
  limits.peaks = gpu::measure_peaks(*dev);
  limits.cache_bytes = gpu::cache_bytes(*dev);
  limits.bytes_in_turn = arguments.selection.bytes_in_turn = 4 * limits.cache_bytes;
  report.device(dev->info(), limits);
  for_each_kernel_case(*dev, arguments.selection, [&](case_group group, const kernel_case& c) {
    const gpu::timing_plan plan{
        .turn = c.turn, .seconds = arguments.seconds, .graphs = !arguments.no_graphs};
    const gpu::launch_times times = gpu::time_launches(*dev, plan, c.run);
    // The read rate of the memory can change during a run. When a case reads at a third of this
    // rate or more, the rate is measured again, so that the case is compared with the limit at this
    // moment.
    const bool near =
        !arguments.selection.small && c.bytes / times.median() > limits.read_bytes_per_s / 3;
    report.measured(group, c, times, near ? probe.read_bytes_per_s() : limits.read_bytes_per_s);
  });
  return 0;
}

} // namespace

void add_kernels_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<kernels_arguments>();
  CLI::App* command = app.add_subcommand(
      "kernels", "Times every op of gpu/ at the shapes of 7B, 13B and the default model, and "
                 "compares it with the measured limits of this machine.");
  command->add_option("--device", arguments->device.kind,
                      "Where to compute: auto, host or cuda. A GPU that is asked for and missing "
                      "is an error.");
  command->add_option("--threads", arguments->device.threads,
                      "The number of compute threads; 0 means one per core.");
  command->add_option("--isa", arguments->device.isa,
                      "The widest instruction set that may be used: auto, plain, avx2, avx512, "
                      "avx512_vnni or avx512_bf16.");
  command
      ->add_option("--rows", arguments->selection.rows,
                   "The numbers of rows of activations, comma-separated; by default 1,8,32 for "
                   "layers and 1,16,256 for other cases.")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  std::map<std::string, case_group> groups;
  for (const case_group group : case_groups)
    groups.emplace(name_of(group), group);
  command
      ->add_option("--group", arguments->selection.groups,
                   "The groups of cases to run, comma-separated; by default all: linear, layers "
                   "(the products of one layer of each seed model, one by one and together), "
                   "attention, decode (attention of the seed models) and rows.")
      ->delimiter(',')
      ->transform(CLI::CheckedTransformer(groups).description(""));
  command->add_option("--only", arguments->selection.only,
                      "Runs only the cases whose \"op shape\" contains this text.");
  command
      ->add_option("--seconds", arguments->seconds,
                   "The seconds that each case is measured for. A case takes 20 samples, unless "
                   "they last four times as long.")
      ->check(CLI::Range(0.001, 60.0));
  CLI::Option* json = command->add_option("--json", arguments->json_path,
                                          "A file for the device, its limits and each case, or for "
                                          "what --paper prints, as lines of JSON.");
  command->add_flag("--no-graphs", arguments->no_graphs,
                    "Times launches on a GPU without capturing them in a graph, should an op not "
                    "survive the capture.");
  command->add_flag("--small", arguments->selection.small, "Uses tiny shapes, to try the program.");
  CLI::Option* paper = command->add_flag(
      "--paper", arguments->paper,
      "Runs nothing: prints what arithmetic on counts says of CUDA's kernels and of a decode step "
      "of the seed models on A100, A6000 and H100, which of their marks it reaches, and what a "
      "server would reach in the cells of the published sweeps.");
  for (CLI::Option* option : command->get_options())
    if (option != paper && option != json && option != command->get_help_ptr())
      paper->excludes(option);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

} // namespace twill::bench
