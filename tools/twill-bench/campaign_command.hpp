// `twill-bench campaign`: sweeps of several models on several servers.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

void add_campaign_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
