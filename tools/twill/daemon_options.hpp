// daemon_options: the flags `--config` and `--set` of commands that predict what a daemon would do,
// and the daemon's options that follow from them.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "config/options.hpp"

namespace twill::tools {

struct daemon_option_flags {
  std::string config_file;
  std::vector<std::string> settings;
};

/// Declares the flags. `flags` must stay alive until parsing has ended.
void add_daemon_option_flags(CLI::App& command, daemon_option_flags& flags);

/// Loads the options that the flags give, with `model` as `model.path` unless `model` is empty.
/// Throws client_error.
config::options load_daemon_options(const daemon_option_flags& flags, const std::string& model);

} // namespace twill::tools
