// WebSocket dialects without sockets: a fake host stands in for session and engine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/protocol/dialect.hpp"
#include "tests/net/support/codec_support.hpp"

namespace twill::testing {

struct fake_host : net::dialect_host {
  std::vector<actors::request> started;
  std::vector<net::engine_requests::key> cancelled;
  std::set<net::engine_requests::key> paused;
  std::vector<net::stored_head> stored;         ///< responses of the tenant "tenant"
  bool ends_by_event = false;                   ///< end() returns true, as for a stored response
  std::vector<net::engine_requests::key> ended; ///< the requests for which end() returned true
  bool full = false;
  bool finds_at_once = true;
  std::function<void()> looked; ///< reports the result of find_stored

  net::engine_requests::key start(actors::request what) override {
    started.push_back(std::move(what));
    return started.size();
  }
  net::result<net::engine_requests::key> start_stored(net::stored_head head,
                                                      actors::request request) override {
    stored.push_back(std::move(head));
    return start(std::move(request));
  }
  void find_stored(const std::string& id, const std::string& tenant, found_stored then) override {
    std::optional<net::followed_response> found;
    for (const auto& one : stored)
      if (one.id == id && one.tenant == tenant)
        found = net::followed_response{std::make_shared<net::stored_head>(one), nullptr};
    looked = [then, found] { then(found); };
    if (finds_at_once) std::exchange(looked, nullptr)();
  }
  net::engine_requests::key follow(std::shared_ptr<net::event_source>) override {
    return start({});
  }
  void cancel(net::engine_requests::key which) override { cancelled.push_back(which); }
  bool end(net::engine_requests::key which) override {
    if (ends_by_event) {
      ended.push_back(which);
      return true;
    }
    cancel(which);
    return false;
  }
  void pause(net::engine_requests::key which) override { paused.insert(which); }
  void resume(net::engine_requests::key which) override { paused.erase(which); }
  bool output_full() const override { return full; }
  std::function<void()> waker() override {
    return [] {};
  }
};

template <class Dialect>
struct fixture : codec_fixture {
  fake_host host;
  config::options options;
  net::current_settings current{options};
  std::unique_ptr<net::dialect> spoken;

  explicit fixture(int max_streams = 32) {
    options.server.max_streams_per_socket = max_streams;
    spoken = std::make_unique<Dialect>(net::dialect_scope{
        host, engine, options, current, responses, find_previous, {"tenant", {}}, "socket", 77});
  }
  void say(const std::string& text) { spoken->on_message(text); }
  void event(net::engine_requests::key key, actors::event ev) {
    spoken->on_event(key, std::move(ev));
  }
  std::optional<value> frame() {
    std::string out;
    if (!spoken->next_frame(out)) return std::nullopt;
    return json(out);
  }
  std::vector<value> frames() {
    std::vector<value> all;
    while (auto one = frame())
      all.push_back(std::move(*one));
    return all;
  }
  /// Plays a whole turn and returns its frames.
  std::vector<value> turn(const std::string& text) {
    say(text);
    const auto key = host.started.size();
    event(key, started());
    event(key, piece("Hi"));
    event(key, finished());
    return frames();
  }
};

} // namespace twill::testing
