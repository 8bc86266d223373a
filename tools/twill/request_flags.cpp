#include "tools/twill/request_flags.hpp"

#include <CLI/CLI.hpp>

#include <boost/json/array.hpp>

namespace twill::tools {

namespace {

constexpr const char* about_url =
    "address of the daemon (http, https or unix:/PATH), default http://127.0.0.1:8080";

/// Adds the options for access to a daemon that do not depend on its address.
void add_access_flags(CLI::App& command, server_flags& flags) {
  command.add_option("--api-key", flags.api_key, "key, when the daemon wants one")
      ->type_name("KEY")
      ->envname("TWILL_API_KEY");
  command
      .add_option("--cacert", flags.cacert,
                  "PEM file of the authorities to trust for https; default: the system's")
      ->type_name("FILE");
}

} // namespace

void add_daemon_flags(CLI::App& command, server_flags& flags) {
  command.add_option("--url", flags.url, about_url)->type_name("URL")->envname("TWILL_URL");
  add_access_flags(command, flags);
}

void add_fleet_flags(CLI::App& command, server_flags& flags, std::vector<std::string>& urls) {
  command
      .add_option("--url", urls,
                  about_url + std::string("; repeatable: several daemons are shown in one table"))
      ->type_name("URL")
      ->envname("TWILL_URL")
      ->allow_extra_args(false);
  add_access_flags(command, flags);
}

void add_server_flags(CLI::App& command, server_flags& flags) {
  add_daemon_flags(command, flags);
  command.add_option("--model", flags.model, "model id; default: the only one")->type_name("ID");
}

void add_sampling_flags(CLI::App& command, sampling_flags& flags) {
  const std::string group = "Sampling (default: the server's)";
  command.add_option("--temperature", flags.temperature, "0 is greedy")->group(group);
  command.add_option("--top-p", flags.top_p, "nucleus")->group(group);
  command.add_option("--top-k", flags.top_k, "keep the k most likely tokens")->group(group);
  command.add_option("--min-p", flags.min_p, "relative to the most likely token")->group(group);
  command.add_option("--repetition-penalty", flags.repetition_penalty, "1 is off")->group(group);
  command.add_option("--presence-penalty", flags.presence_penalty, "0 is off")->group(group);
  command.add_option("--frequency-penalty", flags.frequency_penalty, "0 is off")->group(group);
  command.add_option("--seed", flags.seed, "same seed, same reply")->group(group);
  command.add_option("--max-tokens", flags.max_tokens, "longest reply, in tokens")->group(group);
  command.add_option("--stop", flags.stop, "end the reply before this text; repeatable")
      ->take_all()
      ->expected(1)
      ->group(group);
}

void put_sampling(boost::json::object& request, const sampling_flags& flags,
                  const char* max_tokens_name) {
  const auto put = [&](const char* name, const auto& value) {
    if (value.has_value()) request[name] = *value;
  };
  put("temperature", flags.temperature);
  put("top_p", flags.top_p);
  put("top_k", flags.top_k);
  put("min_p", flags.min_p);
  put("repetition_penalty", flags.repetition_penalty);
  put("presence_penalty", flags.presence_penalty);
  put("frequency_penalty", flags.frequency_penalty);
  put("seed", flags.seed);
  put(max_tokens_name, flags.max_tokens);
  if (!flags.stop.empty()) {
    auto& list = request["stop"].emplace_array();
    for (const auto& text : flags.stop)
      list.emplace_back(text);
  }
}

} // namespace twill::tools
