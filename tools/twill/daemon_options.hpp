// daemon_options: the options of a daemon, as `--config` and `--set` give them to the commands that
// tell what a daemon would do.
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

/// Declares the flags; what they fill must outlive the parsing.
void add_daemon_option_flags(CLI::App& command, daemon_option_flags& flags);

/// With `model` as `model.path` unless it is empty. Throws client_error.
config::options load_daemon_options(const daemon_option_flags& flags, const std::string& model);

} // namespace twill::tools
