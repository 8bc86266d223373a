// `twill key new`: makes an API key for a tenant and prints it once, together with the
// configuration lines that register it with twilld. The key is not stored: the daemon knows only
// its digest.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "config/tenants.hpp"
#include "net/api_keys.hpp"
#include "tools/common/http_client.hpp"
#include "tools/twill/commands.hpp"

namespace twill::tools {
namespace {

void print_new_key(const std::string& name, bool admin) {
  if (!config::is_tenant_name(name))
    throw client_error("NAME must be " + config::tenant_name_words() + ", got \"" + name + "\"");
  const std::string key = net::make_key();
  const std::string digest = net::digest_of(key);
  std::printf("The key of %s, which is shown this once:\n\n"
              "  %s\n\n"
              "For the configuration of twilld:\n\n"
              "  [[tenants]]\n"
              "  name = \"%s\"\n"
              "  key_sha256 = \"%s\"\n",
              name.c_str(), key.c_str(), name.c_str(), digest.c_str());
  if (admin) {
    std::printf("  admin = true\n\n"
                "With this key administrators open the dashboard, at the address that\n"
                "`server.admin_listen` names, such as \"127.0.0.1:8001\".\n");
    return;
  }
  // A line of `server.keys_file` contains only a key's tenant and digest.
  std::printf("\nor, as a line of `server.keys_file`:\n\n"
              "  %s sha256:%s\n",
              name.c_str(), digest.c_str());
}

} // namespace

void add_key(CLI::App& root, int& status) {
  auto* command = root.add_subcommand("key", "make API keys");
  command->require_subcommand(1);
  auto* fresh = command->add_subcommand(
      "new", "print a new key for a tenant, and the lines for the daemon's configuration");
  auto name = std::make_shared<std::string>();
  fresh->add_option("NAME", *name, "the name of the tenant")->required();
  auto admin = std::make_shared<bool>(false);
  fresh->add_flag("--admin", *admin,
                  "make the tenant an administrator, who may use the dashboard and the routes of "
                  "`server.admin_listen`");
  fresh->callback([name, admin, &status] {
    print_new_key(*name, *admin);
    status = status_ok;
  });
}

} // namespace twill::tools
