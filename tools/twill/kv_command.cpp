// `twill kv purge`: removes the KV blocks that a daemon kept on disk (`kv.keep`).
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "actors/offloader/kept_folder.hpp"
#include "config/base/units.hpp"
#include "tools/common/http_client.hpp"
#include "tools/twill/commands.hpp"

namespace twill::tools {
namespace {

void purge(const std::string& dir) {
  const auto folder = actors::kept_folder_path(dir);
  if (!folder.ok()) throw client_error(folder.detail());
  const auto purged = actors::purge_kept_folder(folder.value());
  if (!purged.ok()) throw client_error(purged.detail());
  std::printf("%s of kept KV were removed from %s\n", format_bytes(purged.value()).c_str(),
              folder.value().c_str());
}

} // namespace

void add_kv(CLI::App& root, int& status) {
  auto* command = root.add_subcommand("kv", "keys and values that a daemon keeps on disk");
  command->require_subcommand(1);
  auto* all = command->add_subcommand("purge", "remove them, with the key of their names");
  auto dir = std::make_shared<std::string>();
  all->add_option("--dir", *dir, "the daemon's `kv.disk_dir`; without it, kv/ in the cache folder");
  all->callback([dir, &status] {
    purge(*dir);
    status = status_ok;
  });
}

} // namespace twill::tools
