// `twill models`: lists the served and the stored models; its sub-commands `pull` and `rm` change
// the stored models.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "config/base/units.hpp"
#include "tools/common/home_path.hpp"
#include "tools/common/hub/fetch_report.hpp"
#include "tools/common/hub/hub_cache.hpp"
#include "tools/common/hub/pull.hpp"
#include "tools/common/hub/settings.hpp"
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

void list_of_hub() {
  const auto cache = hub::cache_of_environment();
  const auto models = hub::cached_models(cache);
  if (!models.empty()) put_line("of Hugging Face's hub in " + cache.string());
  for (const auto& model : models) {
    char line[320];
    std::snprintf(line, sizeof line, "  %-48s %s", ("hf:" + model.repository).c_str(),
                  format_bytes(model.bytes).c_str());
    put_line(line);
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
      // A model that is asleep uses no memory.
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
  list_of_hub();
  return status;
}

model_store store_to_fill() {
  auto folder = models_folder_to_fill();
  if (folder.empty())
    throw client_error("no folder for models is known: set TWILL_MODELS, XDG_CACHE_HOME or HOME");
  return model_store(std::move(folder));
}

/// Whether the source names a model of Hugging Face's hub: either it cannot mean anything else, or
/// it has the form ORG/NAME and no file has that name.
bool is_of_hub(const std::string& source) {
  std::error_code ignored;
  return hub::is_reference(source) ||
         (hub::looks_like_id(source) && !std::filesystem::exists(source, ignored));
}

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", printable(line).c_str());
}

/// Compares `--sha256` with the hash that the hub gives for the file. The download itself verifies
/// the hub's hash.
void check_sum_of(const hub::pulled_model& pulled, const models_options& options) {
  if (options.sha256.empty()) return;
  auto wanted = options.sha256;
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (pulled.sha256.empty())
    throw client_error("`--sha256` must come with one file, got a model of several, " +
                       options.source);
  if (pulled.sha256 != wanted)
    throw client_error(options.source + " must have the SHA-256 " + wanted + ", the hub's has " +
                       pulled.sha256);
}

int pull_from_hub(const models_options& options) {
  const auto named = hub::parse_reference(options.source);
  hub::fetch_report report(say);
  hub::pulled_model pulled;
  try {
    pulled = hub::pull(
        named, {[] { return interrupts() > 0; }, [&](const std::string& line) { report.say(line); },
                [&](std::int64_t done, std::int64_t total) { report.show(done, total); },
                [&](const hub::pulled_model& model) { check_sum_of(model, options); }});
  } catch (const std::exception&) {
    report.finish();
    throw;
  }
  report.finish();
  say("serve it with `twilld --model " + named.text() + "`");
  std::printf("%s\n", pulled.path.c_str());
  return status_ok;
}

int pull_one(models_options options) {
  if (is_of_hub(options.source)) return pull_from_hub(options);
  options.source = expand_home(options.source);
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
  } catch (const hub::stopped_error&) {
    std::fprintf(stderr, "twill: interrupted; the same command goes on from here\n");
    return status_interrupted;
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
  if (hub::is_reference(options.name) || hub::looks_like_id(options.name)) {
    const auto named = hub::parse_reference(options.name);
    if (!named.file.empty() || named.revision != "main")
      throw client_error(
          "all files of a model of the hub are removed together: `twill models rm hf:" +
          named.repository + "`");
    if (hub::remove_cached(hub::cache_of_environment(), named.repository)) return status_ok;
    searched += " and " + hub::cache_of_environment().string();
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
  command->footer(
      "Models are pulled into $TWILL_MODELS, else into /var/lib/twill/models where you "
      "may write, else "
      "into\nthe cache folder of your home. Models of the hub are pulled into its own "
      "cache, which programs\nof Python share: HF_HUB_CACHE, HF_HOME, else "
      "~/.cache/huggingface. HF_TOKEN, HF_ENDPOINT,\nHF_HUB_OFFLINE and HTTPS_PROXY mean "
      "what they mean there.");

  auto* pull =
      command->add_subcommand("pull", "put a model into the folder of models; prints its path");
  pull->add_option(
          "model", options->source,
          "model of Hugging Face's hub (ORG/NAME, with :Q4_K_M or :FILE.gguf for one in GGUF, with "
          "@REVISION), GGUF file, Hugging Face folder, https address of a GGUF file, or the word "
          "default")
      ->required()
      ->type_name("MODEL");
  pull->add_option("--sha256", options->sha256, "what the file's SHA-256 must be")
      ->type_name("HEX");
  pull->callback([options, &status] { status = run_pull(*options); });

  auto* rm = command->add_subcommand(
      "rm", "remove a model from the folder of models, or a model of the hub from "
            "its cache");
  rm->add_option("name", options->name, "as `twill models` lists it")
      ->required()
      ->type_name("NAME");
  rm->callback([options, &status] { status = run_rm(*options); });

  command->callback([command, options, &status] {
    if (command->get_subcommands().empty()) status = run_list(*options);
  });
}

} // namespace twill::tools
