// commands: the sub-commands of `twill`, one source file each.
//
// add_*() defines a sub-command. The sub-command runs while CLI11 parses the command line, and sets
// `status`. Errors are exceptions (client_error for those that a user can cause); main() prints
// them once.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace twill::tools {

inline constexpr int status_ok = 0;
inline constexpr int status_failure = 1;
inline constexpr int status_usage = 2;
inline constexpr int status_interrupted = 130;

void add_chat(CLI::App& root, int& status);
void add_complete(CLI::App& root, int& status);
void add_config(CLI::App& root, int& status);
void add_models(CLI::App& root, int& status);
void add_status(CLI::App& root, int& status);
void add_tokenize(CLI::App& root, int& status);
void add_default_model(CLI::App& root, int& status);
void add_doctor(CLI::App& root, int& status);
void add_grammar(CLI::App& root, int& status);
void add_inspect(CLI::App& root, int& status);
void add_key(CLI::App& root, int& status);
void add_kv(CLI::App& root, int& status);
void add_offload(CLI::App& root, int& status);
void add_replay(CLI::App& root, int& status);
void add_top(CLI::App& root, int& status);

} // namespace twill::tools
