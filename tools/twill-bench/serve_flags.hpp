// serve_flags: the command line of `twill-bench serve`; vLLM's names where vLLM has the flag.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "tools/twill-bench/engine/options.hpp"

namespace twill::bench {

struct serve_arguments {
  serve_options options;
  bool show_progress = true;
  std::string html_path; ///< of the page; empty: none
  bool scrape_given = false;
};

/// The groups that other sub-commands share. What they fill must outlive the parsing.
void add_target_flags(CLI::App& command, serve_options& options);
void add_client_flags(CLI::App& command, serve_options& options);
void add_sampling_flags(CLI::App& command, serve_options& options);

/// Declares the flags; they are read and checked into the result when the sub-command is parsed.
std::shared_ptr<serve_arguments> add_serve_flags(CLI::App& command);

} // namespace twill::bench
