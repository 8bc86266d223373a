// `twill models`: which models are served and stored; `pull` and `rm` change what is stored.
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "config/base/units.hpp"
#include "tools/common/models_folder.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"
#include "tools/twill/daemon_view.hpp"
#include "tools/twill/interrupt.hpp"
#include "tools/twill/model_store.hpp"
#include "tools/twill/request_flags.hpp"

namespace twill::tools {
namespace {

struct models_options {
  server_flags server;
  std::string source, sha256, name;
};

void put_line(const std::string& text) {
  write_out(printable(text) + "\n");
}

void list_stored() {
  for (const auto& folder : models_folders()) {
    const auto stored = model_store(folder).list();
    if (stored.empty()) continue;
    put_line("in " + folder.string());
    for (const auto& model : stored) {
      char line[320];
      std::snprintf(line, sizeof line, "  %-48s %s", model.name.c_str(),
                    format_bytes(model.bytes).c_str());
      put_line(line);
    }
  }
}

int run_list(const models_options& options) {
  int status = status_ok;
  const auto where = options.server.where();
  try {
    const auto daemon = look_at(where);
    if (daemon.models.empty() && !daemon.why_not.empty())
      throw client_error("no model is served at " + daemon.url + ": " + daemon.why_not);
    put_line("served at " + daemon.url);
    for (const auto& model : daemon.models) {
      char line[400];
      std::snprintf(line, sizeof line, "  %-48s %s, %s, context %lld", model.id.c_str(),
                    model.family.c_str(), model.quantization.c_str(),
                    static_cast<long long>(model.context_tokens));
      put_line(line);
      // A model that is asleep has nothing.
      const auto load = daemon.loads.find(model.id);
      if (load != daemon.loads.end() && load->second.memory.reserved > 0)
        put_line("    memory: " + memory_text(load->second.memory));
    }
  } catch (const client_error& error) {
    std::fprintf(stderr, "%s %s\n", painted(stream::error, ink::red, "twill:").c_str(),
                 printable(error.what()).c_str());
    status = status_failure;
  }
  list_stored();
  return status;
}

model_store store_to_fill() {
  auto folder = models_folder_to_fill();
  if (folder.empty())
    throw client_error("no folder for models is known: set TWILL_MODELS, XDG_CACHE_HOME or HOME");
  return model_store(std::move(folder));
}

int pull_one(const models_options& options) {
  const auto store = store_to_fill();
  const auto path = options.source == "default" ? store.pull_default()
                                                : store.pull(options.source, options.sha256);
  if (path.ends_with(".gguf")) std::fprintf(stderr, "SHA-256 %s\n", sha256_of(path).c_str());
  std::fprintf(stderr, "serve it with `twilld --model %s`\n", printable(path).c_str());
  std::printf("%s\n", path.c_str());
  return status_ok;
}

int run_pull(const models_options& options) {
  count_interrupts(true);
  try {
    return pull_one(options);
  } catch (const client_error& error) {
    if (interrupts() == 0) throw;
    std::fprintf(stderr, "twill: %s\n", printable(error.what()).c_str());
    return status_interrupted;
  }
}

int run_rm(const models_options& options) {
  std::string searched;
  for (const auto& folder : models_folders()) {
    if (model_store(folder).remove(options.name)) return status_ok;
    searched += (searched.empty() ? "" : " and ") + folder.string();
  }
  throw client_error("there is no model \"" + options.name + "\" in " + searched +
                     "; `twill models` lists what is there");
}

} // namespace

void add_models(CLI::App& root, int& status) {
  auto* command = root.add_subcommand("models", "list, pull and remove models");
  auto options = std::make_shared<models_options>();
  add_daemon_flags(*command, options->server);
  command->require_subcommand(0, 1);
  command->footer("Models are pulled into $TWILL_MODELS, else into /var/lib/twill/models where you "
                  "may write, else "
                  "into\nthe cache folder of your home.");

  auto* pull =
      command->add_subcommand("pull", "put a model into the folder of models; prints its path");
  pull->add_option(
          "model", options->source,
          "GGUF file, Hugging Face folder, https address of a GGUF file, or the word default")
      ->required()
      ->type_name("MODEL");
  pull->add_option("--sha256", options->sha256, "what the file's SHA-256 must be")
      ->type_name("HEX");
  pull->callback([options, &status] { status = run_pull(*options); });

  auto* rm = command->add_subcommand("rm", "remove a model from the folder of models");
  rm->add_option("name", options->name, "as `twill models` lists it")
      ->required()
      ->type_name("NAME");
  rm->callback([options, &status] { status = run_rm(*options); });

  command->callback([command, options, &status] {
    if (command->get_subcommands().empty()) status = run_list(*options);
  });
}

} // namespace twill::tools
