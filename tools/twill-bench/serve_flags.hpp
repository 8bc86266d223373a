// serve_flags: the command line of `twill-bench serve`. Flags have vLLM's names where vLLM has the
// same flag.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "tools/twill-bench/engine/options.hpp"

namespace twill::bench {

struct serve_arguments {
  serve_options options;
  bool show_progress = true;
  std::string html_path; ///< path of the HTML page; empty: no page is written
  bool scrape_given = false;
};

/// Groups of flags that other sub-commands use as well. `options`, which they fill, must outlive
/// the parsing.
void add_target_flags(CLI::App& command, serve_options& options);
void add_client_flags(CLI::App& command, serve_options& options);
void add_sampling_flags(CLI::App& command, serve_options& options);

/// Declares the flags. Their values are checked and stored in the result when the command line
/// chooses this sub-command.
std::shared_ptr<serve_arguments> add_serve_flags(CLI::App& command);

} // namespace twill::bench
