// The sub-commands of `twill`, one file each.
//
// add_*() defines a sub-command; its work runs while CLI11 parses, and sets `status`. What goes
// wrong is thrown (client_error for what a user can cause) and printed once, by main().
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
