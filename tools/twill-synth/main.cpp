// twill-synth: writes random checkpoints of every family that twill runs, at any size, in any
// format that twill reads. Exit status: 0 ok, 1 failure, 2 wrong usage, 130 interrupted.
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/read_file.hpp"
#include "config/base/standard_streams.hpp"
#include "config/base/units.hpp"
#include "models/families/family.hpp"
#include "models/synth/plan.hpp"
#include "models/synth/recipe.hpp"
#include "tools/common/cli_pages.hpp"
#include "tools/common/cli_usage.hpp"
#include "tools/common/progress_bar.hpp"
#include "tools/twill-synth/scripted.hpp"
#include "tools/twill-synth/write.hpp"

namespace {

namespace synth = twill::synth;

/// The word that is given instead of a preset's name to write a model with a script.
constexpr std::string_view scripted = "scripted";

constexpr const char* no_output = "the output path is missing (try --help)";

volatile std::sig_atomic_t interrupted = 0;

void on_signal(int) {
  interrupted = 1;
}

struct arguments {
  std::string preset;
  std::string out;
  std::string format = "safetensors";
  std::string gguf_kind;
  std::string max_shard = "5 GB";
  std::string script; ///< path of the script file
  bool list = false;
  bool dry_run = false;
  bool quiet = false;
  std::map<std::string, std::string> options; ///< the recipe's options, keyed by name
};

/// Prints one line to standard error and returns the exit status 1.
int fail(const std::string& what) {
  std::fprintf(stderr, "twill-synth: %s\n", what.c_str());
  return 1;
}

int print_presets() {
  std::printf("%-20s %-9s %7s %7s %6s %5s %7s %8s  %-18s %s\n", "preset", "family", "hidden",
              "layers", "heads", "kv", "mlp", "vocab", "weights", "size");
  for (const synth::recipe& r : synth::presets())
    std::printf("%-20s %-9s %7d %7d %6d %5d %7d %8d  %-18s %s\n", r.preset.c_str(),
                std::string(r.family->name).c_str(), r.hidden_size, r.n_layers, r.n_heads,
                r.n_kv_heads, r.mlp_size, r.vocab_size, synth::describe_weights(r).c_str(),
                twill::format_bytes(synth::total_bytes(synth::plan_tensors(r))).c_str());
  return 0;
}

twill::models::result<synth::recipe> make_recipe(const arguments& args) {
  std::string text = args.preset;
  for (const auto& [name, value] : args.options) {
    if (value.empty() || value.find('&') != std::string::npos)
      return twill::models::failure{twill::models::errc::bad_metadata,
                                    "`" + name + "` must be a plain value, got \"" + value + "\""};
    text += (text.find('?') == std::string::npos ? "?" : "&") + name + "=" + value;
  }
  return synth::parse_recipe(text);
}

/// Writes a scripted model (see scripted.hpp).
int write_script(const arguments& args) {
  constexpr std::int64_t most_bytes = 4 * twill::mib;
  const auto text = twill::read_file(args.script, most_bytes);
  if (!text.ok()) return fail(text.detail());
  const auto script = synth::parse_script(text.value(), args.script);
  if (!script.ok()) return fail(script.detail());
  if (args.out.empty()) return fail(no_output);
  const auto written = synth::write_scripted(script.value(), args.out);
  if (!written.ok()) return fail(written.detail());
  if (!args.quiet) std::printf("%s\n", args.out.c_str());
  return 0;
}

int write(const arguments& args) {
  const auto recipe = make_recipe(args);
  if (!recipe.ok()) return fail(recipe.detail());
  synth::write_options options;
  options.gguf_kind = args.gguf_kind;
  options.format = args.format == "bin"    ? synth::file_format::pytorch
                   : args.format == "gguf" ? synth::file_format::gguf
                                           : synth::file_format::safetensors;
  const auto shard = twill::parse_bytes(args.max_shard);
  if (!shard || *shard <= 0)
    return fail("--max-shard-size must be a size like \"5 GB\", got \"" + args.max_shard + "\"");
  options.max_shard_bytes = *shard;

  const auto files = synth::weight_files(recipe.value(), options);
  if (!files.ok()) return fail(files.detail());
  if (args.dry_run) {
    for (const synth::written_file& file : files.value())
      std::printf("%-44s %s\n", file.name.empty() ? args.out.c_str() : file.name.c_str(),
                  twill::format_bytes(file.bytes).c_str());
    return 0;
  }
  if (args.out.empty()) return fail(no_output);

  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGXFSZ, SIG_IGN); // write() then reports an exceeded file size limit as an error
  twill::tools::progress_bar bar(args.quiet);
  options.progress = [&](std::int64_t done, std::int64_t total) {
    bar.show(done, total);
    return interrupted == 0;
  };
  const auto written = synth::write_checkpoint(recipe.value(), args.out, options);
  bar.finish(written.ok());
  if (!written.ok())
    return interrupted != 0 ? (fail(written.detail()), 130) : fail(written.detail());
  if (!args.quiet) std::printf("%s\n", args.out.c_str());
  return 0;
}

/// The first given option that applies only to checkpoints of presets; empty: none.
std::string option_of_checkpoints(const CLI::App& app) {
  std::vector<std::string> names{"--format", "--gguf-kind", "--max-shard-size", "--dry-run"};
  for (const synth::option_help& option : synth::options())
    names.push_back("--" + std::string(option.name));
  for (const std::string& name : names)
    if (app.count(name) > 0) return name;
  return {};
}

void add_flags(CLI::App& app, arguments& args) {
  app.add_option("preset", args.preset, "preset, see --list; \"PRESET?layers=2&seed=3\" works too");
  app.add_option("out", args.out, "new folder, or new file for gguf");
  app.add_option("--format", args.format, "safetensors, bin (PyTorch) or gguf")
      ->check(CLI::IsMember({"safetensors", "bin", "gguf"}));
  app.add_option("--gguf-kind", args.gguf_kind, "F32, F16, BF16, Q8_0, Q4_0 or Q4_1");
  app.add_option("--max-shard-size", args.max_shard, "largest weight file (5 GB)");
  app.add_option("--script", args.script,
                 "with the preset \"scripted\": a JSON file with what the model answers");
  app.add_flag("--list", args.list, "print the presets");
  app.add_flag("--dry-run", args.dry_run, "print the weight files' sizes and write nothing");
  app.add_flag("-q,--quiet", args.quiet, "no progress bar, no output");
  for (const synth::option_help& option : synth::options())
    app.add_option("--" + std::string(option.name), args.options[option.name], option.text)
        ->group("Sizes and kinds (override the preset)");
}

} // namespace

int main(int argc, char** argv) {
  twill::open_missing_standard_streams();
  CLI::App app{"Writes a random checkpoint of a model family, with a usable tokenizer",
               "twill-synth"};
  app.set_version_flag("--version", "twill-synth " TWILL_VERSION);
  arguments args;
  add_flags(app, args);
  try {
    if (twill::tools::print_pages(app, argc, argv)) return 0;
    app.parse(argc, argv);
    for (auto option = args.options.begin(); option != args.options.end();)
      option =
          app.count("--" + option->first) == 0 ? args.options.erase(option) : std::next(option);
    if (args.list) return print_presets();
    if (args.preset.empty()) return fail("the preset is missing (try --list or --help)");
    if ((args.preset == scripted) != !args.script.empty())
      return fail("the preset \"scripted\" and the option --script need one another");
    if (args.preset != scripted) return write(args);
    if (const auto ignored = option_of_checkpoints(app); !ignored.empty())
      return fail("`" + ignored + "` must not be given with --script, which says what is written");
    return write_script(args);
  } catch (const CLI::ParseError& error) {
    return twill::tools::explain_usage(app, error);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
