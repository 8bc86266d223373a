// `twill config`: writes a first configuration file with the keys that most people change.
#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "tools/common/endpoint.hpp"
#include "tools/twill/commands.hpp"

namespace twill::tools {
namespace {

constexpr const char* first_config =
    R"(# Configuration of twilld. Each key here has its default; take away the '#' before it and change the value.
# `twilld --check-config FILE` checks the file, `twilld --print-reference` describes every key.

[model]
# The model: a GGUF file, a Hugging Face folder, hf:ORG/NAME of Hugging Face's hub, or empty for the default model.
# path = ""
# The name by which clients ask for it. Empty: the name of the file or folder.
# name = ""

[sampling]
# What requests get that do not say. -1: what the model's own files say.
# temperature = -1
# top_p = -1

[server]
# Who can connect: this machine alone. "0.0.0.0:8080" lets others in; set api_keys then.
# listen = "127.0.0.1:8080"
# api_keys = []
# A certificate and its key serve HTTPS.
# tls_certificate = ""
# tls_key = ""
# Where administrators find the dashboard; `twill key new NAME --admin` makes the key that it asks for.
# admin_listen = ""
# The user that a daemon started by root becomes.
# user = ""

[device]
# The most memory for the model, its KV cache and its work; 0 is what the machine has. Weights that do not fit are streamed.
# memory = 0
# Compute threads; 0: one for each core.
# threads = 0

[kv]
# The memory for the texts that the model has in mind; 0: a share of what is free.
# memory = 0

[scheduler]
# The longest prompt and answer together, in tokens; 0: the model's own limit.
# max_context_tokens = 0

[log]
# trace, debug, info, warn, error or off.
# level = "info"
)";

[[noreturn]] void refuse(const std::string& path, int why) {
  throw client_error(why == EEXIST ? path + " is there already and stays as it is; name a new file"
                                   : path + " cannot be written: " + std::strerror(why));
}

int run_config(const std::string& path) {
  if (path.empty() || path == "-") {
    std::fputs(first_config, stdout);
    return status_ok;
  }
  // The file may later contain API keys, so not every user of the machine may read it.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
  if (fd < 0) refuse(path, errno);
  std::string_view rest = first_config;
  while (!rest.empty()) {
    const auto n = ::write(fd, rest.data(), rest.size());
    if (n < 0) {
      const int why = errno;
      ::close(fd);
      ::unlink(path.c_str());
      refuse(path, why);
    }
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  ::close(fd);
  std::fprintf(stderr, "wrote %s; start with `twilld --config %s`\n", path.c_str(), path.c_str());
  return status_ok;
}

} // namespace

void add_config(CLI::App& root, int& status) {
  auto* command = root.add_subcommand("config", "write a first configuration file for twilld");
  auto path = std::make_shared<std::string>();
  command->add_option("file", *path, "a file that is not there yet; default: standard output")
      ->type_name("FILE");
  command->callback([path, &status] { status = run_config(*path); });
}

} // namespace twill::tools
