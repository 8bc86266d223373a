#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/twill-bench/commands.hpp"
#include "tools/twill-bench/report/charts.hpp"
#include "tools/twill-bench/report/write_file.hpp"
#include "tools/twill-bench/runs/compare.hpp"
#include "tools/twill-bench/runs/sweep_file.hpp"

namespace twill::bench {
namespace {

struct compare_arguments {
  std::vector<std::string> files, names, references;
  std::string folder;
};

/// The name from --names, else the name of the sweep's folder or of the run's file.
std::string name_of(const compare_arguments& arguments, std::size_t i) {
  if (i < arguments.names.size()) return arguments.names[i];
  const std::filesystem::path path(arguments.files[i]);
  const std::string folder = path.parent_path().filename().string();
  return path.filename() == "sweep.json" && !folder.empty() ? folder : path.stem().string();
}

int run(const compare_arguments& arguments) {
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<named_sweep> sweeps;
  for (std::size_t i = 0; i < arguments.files.size(); ++i) {
    texts.emplace_back(name_of(arguments, i), read_file(arguments.files[i]));
    if (is_sweep(texts.back().second))
      sweeps.push_back({texts.back().first, read_sweep(texts.back().second, arguments.files[i])});
  }
  if (!sweeps.empty() && sweeps.size() != texts.size())
    throw std::invalid_argument(
        "the files must all be results of sweep or all be results of serve");
  if (sweeps.empty() && !arguments.references.empty())
    throw std::invalid_argument(
        "--reference must be used with results of sweep, because published figures are sweeps");
  std::vector<reference> references;
  for (const std::string& each : arguments.references)
    references.push_back(reference_sweep(each));
  const std::string markdown =
      sweeps.empty() ? compare_serves(texts) : compare_sweeps(sweeps, references);
  std::fputs(markdown.c_str(), stdout);
  if (arguments.folder.empty()) return 0;
  write_file(arguments.folder + "/compare.md", markdown);
  if (!sweeps.empty())
    std::fprintf(stderr, "%s\n", write_charts(arguments.folder, compare_charts(sweeps)).c_str());
  std::fprintf(stderr, "saved %s\n", arguments.folder.c_str());
  return 0;
}

} // namespace

void add_compare_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "compare", "Shows result files side by side, with ratios to the first file.");
  auto arguments = std::make_shared<compare_arguments>();
  command
      ->add_option(
          "files", arguments->files,
          "The JSON files that `sweep`, or that `serve`, wrote; the two kinds cannot be mixed.")
      ->required()
      ->check(CLI::ExistingFile);
  command
      ->add_option("--names", arguments->names,
                   "The names of the files in the tables, comma-separated. By default a file is "
                   "called by its path.")
      ->delimiter(',');
  command
      ->add_option("--reference", arguments->references,
                   "Adds published sweeps, measured on an A100 40G, to the tables.")
      ->delimiter(',')
      ->check(CLI::IsMember(reference_names()));
  command->add_option("--output-dir", arguments->folder,
                      "Also writes compare.md and charts into this folder.");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

} // namespace twill::bench
