#include "tools/twill/daemon_options.hpp"

#include <utility>

#include "config/load.hpp"
#include "tools/common/endpoint.hpp"

namespace twill::tools {

void add_daemon_option_flags(CLI::App& command, daemon_option_flags& flags) {
  command.add_option("--config", flags.config_file, "the daemon's TOML file")->type_name("FILE");
  command.add_option("--set", flags.settings, "set one key, as for twilld")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->expected(1);
}

config::options load_daemon_options(const daemon_option_flags& flags, const std::string& model) {
  std::vector<config::setting> settings;
  for (const auto& text : flags.settings) {
    auto parsed = config::parse_setting(text);
    if (!parsed.ok()) throw client_error(parsed.detail());
    settings.push_back(std::move(parsed).value());
  }
  if (!model.empty()) settings.push_back({"--model", "model.path", model, true});
  auto loaded = config::load(flags.config_file, settings);
  if (!loaded.ok()) throw client_error(loaded.detail());
  return std::move(loaded).value();
}

} // namespace twill::tools
