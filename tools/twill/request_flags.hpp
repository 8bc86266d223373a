// Options that several sub-commands share: where the daemon is, and how tokens are chosen.
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

/// Absent values are left to the server.
struct sampling_flags {
  std::optional<double> temperature, top_p, min_p;
  std::optional<double> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<std::int64_t> top_k, seed, max_tokens;
  std::vector<std::string> stop;
};

/// Where the daemon is, for commands that ask for no model.
void add_daemon_flags(CLI::App& command, server_flags& flags);
/// Where one or several daemons are: their addresses go to `urls`, and stay out of `flags`. None
/// was given: it stays empty.
void add_fleet_flags(CLI::App& command, server_flags& flags, std::vector<std::string>& urls);
/// Where the daemon is, and which model is asked.
void add_server_flags(CLI::App& command, server_flags& flags);
void add_sampling_flags(CLI::App& command, sampling_flags& flags);

/// Sets the given fields; the token limit goes by the protocol's own name.
void put_sampling(boost::json::object& request, const sampling_flags& flags,
                  const char* max_tokens_name);

} // namespace twill::tools
