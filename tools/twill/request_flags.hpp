// request_flags: options that several sub-commands share: the address of the daemon, and the
// sampling parameters.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/endpoint.hpp"

namespace CLI {
class App;
}

namespace twill::tools {

struct server_flags {
  std::string url = "http://127.0.0.1:8080";
  std::string api_key;
  std::string cacert;
  std::string model;

  endpoint where() const { return parse_endpoint(url, api_key, cacert); }
};

/// Absent values are not sent, so that the server applies its defaults.
struct sampling_flags {
  std::optional<double> temperature, top_p, min_p;
  std::optional<double> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<std::int64_t> top_k, seed, max_tokens;
  std::vector<std::string> stop;
};

/// Adds the options for the daemon's address, for commands that need no model.
void add_daemon_flags(CLI::App& command, server_flags& flags);
/// Adds the options for the addresses of one or several daemons. The addresses are stored in `urls`
/// and not in `flags`; `urls` stays empty when none is given.
void add_fleet_flags(CLI::App& command, server_flags& flags, std::vector<std::string>& urls);
/// Adds the options for the daemon's address and for the model.
void add_server_flags(CLI::App& command, server_flags& flags);
void add_sampling_flags(CLI::App& command, sampling_flags& flags);

/// Writes the values that are set into `request`; the token limit is stored under the name that the
/// protocol uses for it.
void put_sampling(boost::json::object& request, const sampling_flags& flags,
                  const char* max_tokens_name);

} // namespace twill::tools
