#include "tools/twill-bench/protocols/protocol.hpp"

#include <array>
#include <stdexcept>

#include "tools/twill-bench/protocols/backends.hpp"

namespace twill::bench {
namespace {

struct backend {
  const char* name;
  std::unique_ptr<protocol> (*make)(const serve_options&);
};

constexpr std::array<backend, 6> backends{{
    {"twill-stream", make_twill_stream},
    {"responses-ws", make_responses_ws},
    {"openai", make_openai},
    {"openai-chat", make_openai_chat},
    {"llama.cpp", make_llama_cpp},
    {"tgi", make_tgi},
}};

} // namespace

std::string whole_text(const prompt& asked) {
  std::string out;
  for (const spoken_turn& turn : asked.earlier)
    out += turn.asked + turn.answered;
  return out + asked.text;
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const backend& each : backends)
    names.emplace_back(each.name);
  return names;
}

std::unique_ptr<protocol> make_protocol(const serve_options& options) {
  std::string known;
  for (const backend& each : backends) {
    if (options.backend != each.name) {
      known += known.empty() ? each.name : std::string(", ") + each.name;
      continue;
    }
    auto chosen = each.make(options);
    if (chosen->transport() == wire::websocket && !options.stream)
      throw std::invalid_argument("--no-stream is for HTTP backends, got --backend " +
                                  options.backend);
    if (chosen->transport() == wire::http && options.connections > 0)
      throw std::invalid_argument("--connections is for WebSocket backends, got --backend " +
                                  options.backend);
    if (options.connections > 0 && options.disconnect_percent > 0)
      throw std::invalid_argument("--request-disconnect-rate must be 0 with --connections, whose "
                                  "sockets carry other requests too");
    return chosen;
  }
  throw std::invalid_argument("--backend must be one of " + known + ", got " + options.backend);
}

} // namespace twill::bench
