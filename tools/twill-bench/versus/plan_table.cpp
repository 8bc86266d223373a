#include "tools/twill-bench/versus/plan_table.hpp"

#include <algorithm>
#include <sstream>

#include "config/base/read_file.hpp"
#include "config/parse_toml.hpp"
#include "tools/twill-bench/protocols/protocol.hpp"

namespace twill::bench {

toml::table parse_plan(const std::string& path) {
  constexpr std::int64_t largest_plan = 4 << 20;
  const auto text = read_file(path, largest_plan);
  if (!text.ok()) throw std::runtime_error(text.detail());
  try {
    return config::parse_toml(text.value(), path);
  } catch (const toml::parse_error& error) {
    std::ostringstream words;
    words << path << ":" << error.source().begin.line << ": " << error.description();
    throw std::runtime_error(words.str());
  }
}

versus_server read_server(plan_table& from) {
  versus_server out;
  out.name = from.required("name");
  out.order.command = from.command("command");
  from.pairs("environment", out.order.environment);
  from.read<std::string>("folder", out.order.folder);
  std::chrono::duration<double> grace(10);
  from.seconds("stop_timeout_s", grace);
  out.order.grace = std::chrono::duration_cast<std::chrono::milliseconds>(grace);
  out.target.base_url = from.required("base_url");
  out.ready_url = out.target.base_url + "/health";
  from.read<std::string>("ready_url", out.ready_url);
  from.seconds("ready_timeout_s", out.ready_timeout);
  from.read<std::string>("backend", out.target.backend);
  const auto known = backend_names();
  if (std::find(known.begin(), known.end(), out.target.backend) == known.end())
    from.fail("backend", "is not a known backend, got " + out.target.backend);
  from.read<std::string>("endpoint", out.target.endpoint);
  from.read<std::string>("model", out.target.model);
  from.read<std::string>("extra_body", out.target.extra_body);
  from.pairs("headers", out.target.headers);
  from.count("connections", out.target.connections, 0);
  return out;
}

} // namespace twill::bench
