// Temporary driver: random structured outputs and the cost of masks.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <condition_variable>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>

#include "actors/engine.hpp"
#include "config/options.hpp"

using namespace twill;
using namespace std::chrono_literals;

struct job { std::mutex m; std::condition_variable c; std::string text; bool over = false; std::string finish; std::string error; int tokens = 0; std::chrono::steady_clock::time_point first, last; };

static std::string read(const std::string& p) { std::ifstream f(p); std::stringstream s; s << f.rdbuf(); return s.str(); }
static std::string esc(const std::string& t) { std::string o = "\""; for (unsigned char c : t) { char b[8]; if (c == '"' || c == '\\') { o += '\\'; o += (char)c; } else if (c < 32) { std::snprintf(b, 8, "\\u%04x", c); o += b; } else o += (char)c; } return o + "\""; }

int main(int argc, char** argv) {
  config::options o;
  o.model.path = std::getenv("TWILL_DEFAULT_MODEL");
  o.log.level = "warn";
  o.scheduler.max_running = 32;
  o.structured.compile_timeout = std::chrono::milliseconds(20000);
  auto engine = actors::start_engine(o);
  auto& port = engine->port();
  while (port.state() != actors::engine_state::ready) { if (port.state() == actors::engine_state::failed) { std::cerr << port.state_detail(); return 1; } std::this_thread::sleep_for(20ms); }
  const std::string mode = argv[1];
  auto submit = [&](job& j, actors::request r) {
    port.submit(std::move(r), [&j](actors::event e) {
      std::lock_guard l(j.m);
      j.text += e.text;
      for (auto& p : e.parts) j.text += p.text;
      if (!e.tokens.empty()) { if (j.tokens == 0) j.first = std::chrono::steady_clock::now(); j.last = std::chrono::steady_clock::now(); j.tokens += (int)e.tokens.size(); }
      if (e.finish) j.finish = *e.finish == actors::finish_reason::stop ? "stop" : "length";
      if (e.error) j.error = e.error->message;
      j.over = e.last; j.c.notify_all();
    });
  };
  auto wait = [](job& j) { std::unique_lock l(j.m); j.c.wait(l, [&] { return j.over; }); };
  if (mode == "cost") {
    const int rounds = std::atoi(argv[2]), batch = std::atoi(argv[3]);
    config::grammar_spec spec; spec.what = config::grammar_spec::kind::json_schema;
    spec.text = R"({"type":"array","minItems":200,"items":{"type":"object","properties":{"name":{"type":"string"},"n":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}},"required":["name","n","tags"],"additionalProperties":false}})";
    for (int r = 0; r < rounds; ++r)
      for (int with = 0; with < 3; ++with) {
        std::vector<job> js(batch);
        for (int i = 0; i < batch; ++i) {
          actors::request q; q.prompt = actors::text_prompt{"Write a list of people as JSON."};
          q.sampling.temperature = 1; q.sampling.seed = 100 + i; q.sampling.max_tokens = 100; q.sampling.ignore_eos = true;
          if (with == 1) q.grammar = spec;
          if (with == 2) { q.sampling.allowed_token_ids.resize(40000); for (int k = 0; k < 40000; ++k) q.sampling.allowed_token_ids[k] = k; }
          submit(js[i], std::move(q));
        }
        double s = 0; int t = 0;
        for (auto& j : js) { wait(j); if (!j.error.empty()) std::cerr << j.error << "\n"; s += std::chrono::duration<double>(j.last - j.first).count(); t += j.tokens - 1; }
        std::printf("%s step %.3f ms (%d tokens) %s\n", with == 1 ? "grammar" : with == 2 ? "allowed" : "none   ", s / t * 1000, t, with == 1 ? js[0].text.substr(0, 60).c_str() : "");
        std::fflush(stdout);
      }
    return 0;
  }
  // valid N files...
  const int per = std::atoi(argv[2]), max_tokens = std::atoi(argv[3]);
  std::vector<std::string> files(argv + 4, argv + argc);
  std::vector<job> js(files.size() * per);
  std::mutex m; std::size_t next = 0;
  std::vector<std::thread> ts;
  for (int t = 0; t < 32; ++t) ts.emplace_back([&] {
    for (;;) {
      std::size_t i; { std::lock_guard l(m); if (next >= js.size()) return; i = next++; }
      actors::request q; q.prompt = actors::text_prompt{"Here is an example in JSON:\n"};
      q.sampling.temperature = 1; q.sampling.seed = 1000 + i; q.sampling.max_tokens = max_tokens;
      config::grammar_spec spec; spec.what = config::grammar_spec::kind::json_schema; spec.text = read(files[i / per]);
      q.grammar = spec;
      submit(js[i], std::move(q)); wait(js[i]);
      std::lock_guard l(m);
      std::cout << "{\"file\":" << esc(files[i / per]) << ",\"finish\":" << esc(js[i].finish) << ",\"error\":" << esc(js[i].error) << ",\"tokens\":" << js[i].tokens << ",\"text\":" << esc(js[i].text) << "}" << std::endl;
    }
  });
  for (auto& t : ts) t.join();
}
