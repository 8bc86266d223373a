#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/device.hpp"
#include "tools/common/hub/model_argument.hpp"
#include "tools/twill-bench/accuracy/candidate.hpp"
#include "tools/twill-bench/accuracy/compare.hpp"
#include "tools/twill-bench/accuracy/table.hpp"
#include "tools/twill-bench/commands.hpp"

namespace twill::bench {
namespace {

struct accuracy_arguments {
  gpu::device_config device;
  std::vector<std::string> models;
  std::vector<std::string> goldens;
  std::string text_path;
  std::vector<std::string> types = {"f32/f32", "bf16/bf16", "int8/bf16", "int8/int8"};
  bool markdown = false;
};

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + " cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Opens one model. Models are opened one at a time, so that only one is in memory.
using opener = std::function<models::result<candidate>()>;

std::vector<opener> openers_of(const accuracy_arguments& arguments) {
  std::vector<opener> list;
  const std::string text = arguments.text_path.empty() ? "" : read_text(arguments.text_path);
  for (const std::string& path : arguments.models) {
    if (!arguments.text_path.empty())
      list.emplace_back(
          [path, text] { return open_with_text(tools::hub::local_model(path), text); });
    else
      list.emplace_back([path] {
        return open_golden(path, std::filesystem::path(path).lexically_normal().filename());
      });
  }
  for (const std::string& root : arguments.goldens)
    for (const std::string& folder : golden_folders_below(root))
      list.emplace_back([folder, root] {
        return open_golden(folder, std::filesystem::path(folder).lexically_relative(root));
      });
  return list;
}

int run(const accuracy_arguments& arguments) {
  std::vector<type_pair> pairs;
  for (const std::string& text : arguments.types) {
    auto pair = parse_type_pair(text);
    if (!pair.ok()) throw std::runtime_error(pair.detail());
    pairs.push_back(std::move(pair).value());
  }
  const std::vector<opener> openers = openers_of(arguments);
  if (openers.empty())
    throw std::runtime_error(
        "there must be a model to compare: name one, or give a folder with --golden");
  auto device = gpu::device::open(arguments.device);
  if (!device.ok()) throw std::runtime_error(device.detail());

  std::fputs((arguments.markdown ? markdown_header(pairs) : text_header()).c_str(), stdout);
  int exit_code = 0;
  for (const opener& open : openers) {
    const auto s = open();
    const auto tallies = s.ok() ? compare_types(*device.value(), s.value(), pairs)
                                : models::result<std::vector<tally>>(s.error());
    if (!tallies.ok()) {
      std::fprintf(stderr, "twill-bench: %s\n", tallies.detail().c_str());
      exit_code = 1;
      continue;
    }
    const std::string& name = s.value().name;
    std::fputs((arguments.markdown ? markdown_line(name, tallies.value())
                                   : text_lines(name, pairs, tallies.value()))
                   .c_str(),
               stdout);
    std::fflush(stdout);
  }
  return exit_code;
}

} // namespace

void add_accuracy_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<accuracy_arguments>();
  CLI::App* command = app.add_subcommand(
      "accuracy", "Compares compute and KV types with f32, token by token over given texts.");
  command->add_option(
      "model", arguments->models,
      "The models to compare: with --text any file or folder that twilld serves, without it "
      "folders that hold a golden.json.");
  command
      ->add_option("--golden", arguments->goldens,
                   "Compares every folder with a golden.json at or below this one.")
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--text", arguments->text_path,
                   "The file of UTF-8 text that the models are run over.")
      ->check(CLI::ExistingFile);
  command
      ->add_option("--types", arguments->types,
                   "The COMPUTE/KV pairs to compare, comma-separated, with the values of "
                   "model.compute and kv.type.")
      ->delimiter(',')
      ->capture_default_str();
  command->add_flag("--markdown", arguments->markdown,
                    "Prints a Markdown table with one line per model.");
  command->add_option("--threads", arguments->device.threads,
                      "The number of compute threads; 0 means one per core.");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

} // namespace twill::bench
