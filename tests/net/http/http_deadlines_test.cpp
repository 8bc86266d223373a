// Requests, answers and pauses of any length on one connection: each time-out is counted from the
// event that starts it.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "net/http/http_connection.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;
using namespace std::chrono_literals;

namespace {

using phase = http_connection::phase;
using time_point = http_connection::time;

constexpr auto idle_timeout = 60s, header_timeout = 10s, keep_alive = 15s;
constexpr std::int64_t body_rate = 100; ///< bytes per second
constexpr http_connection::limits limits{
    {1'000'000, 30s}, {header_timeout, body_rate}, idle_timeout, keep_alive};

/// Writes the texts of events.
class text_encoder final : public reply_encoder {
public:
  void on_event(std::size_t, actors::event&& ev, std::string& out) override { out += ev.text; }
  void on_end(std::string& out) override { out += "."; }
  void on_error(const api_error& error, std::string& out) override { out += error.message; }
};

/// A client that reads at once. Each function notes the deadline to expect in `expected_`.
class exchange {
public:
  void apply(const operation& o) {
    now_ += std::chrono::seconds(o.a % 70);
    if (connection_.now_in() == phase::closed) return;
    switch (connection_.now_in()) {
    case phase::idle:
      connection_.on_head_begun(now_);
      expected_ = now_ + header_timeout;
      break;
    case phase::receiving_head:
      connection_.on_head({"id"}, now_);
      body_from_ = now_;
      expected_ = now_ + header_timeout;
      break;
    case phase::receiving_body:
      receive_body(o);
      break;
    case phase::answering:
      answer(o);
      break;
    default:
      throw broken("a connection whose client reads at once ends by nothing but a time-out");
    }
    check();
  }

private:
  void receive_body(const operation& o) {
    if (o.kind % 3 > 0) {
      const std::int64_t bytes = body_rate * (o.b % 50);
      connection_.on_body_bytes(bytes);
      expected_ = body_from_ + header_timeout + std::chrono::seconds(bytes / body_rate);
      return;
    }
    connection_.on_whole_request();
    streams_ = o.b % 2 == 0;
    expected_ = time_point::max();
    if (!streams_) return;
    call stream;
    stream.stream = true;
    stream.requests.resize(1);
    stream.encoder = std::make_unique<text_encoder>();
    connection_.on_call(stream, 7, now_);
    expected_ = now_ + keep_alive;
  }

  void answer(const operation& o) {
    if (!streams_) {
      connection_.on_reply({200, "body"}, now_);
      return idle();
    }
    actors::event ev;
    ev.text = "words";
    ev.last = o.kind % 4 == 0;
    if (ev.last) ev.finish = actors::finish_reason::stop;
    std::vector<std::pair<std::uint64_t, actors::event>> events;
    const bool last = ev.last;
    events.emplace_back(7, std::move(ev));
    connection_.on_engine_events(std::move(events), now_);
    if (last) return idle();
    write_all();
    expected_ = now_ + keep_alive; // from the last bytes that were written
  }

  void idle() {
    write_all();
    expected_ = now_ + idle_timeout;
  }

  void write_all() {
    while (connection_.begin_write(now_) != nullptr)
      connection_.on_written(now_);
  }

  void check() const {
    const auto seconds = [this](time_point at) {
      return at == time_point::max()
                 ? std::string("never")
                 : std::to_string(
                       std::chrono::duration_cast<std::chrono::milliseconds>(at - now_).count());
    };
    const auto due = connection_.next_deadline();
    demand(due == expected_, "in phase " + std::to_string(static_cast<int>(connection_.now_in())) +
                                 " the next deadline is in " + seconds(due) + " ms, expected in " +
                                 seconds(expected_));
  }

  time_point now_{1h}, expected_{}, body_from_{};
  http_connection connection_{limits, now_};
  bool streams_ = false;
};

} // namespace

TEST_CASE("each time-out of a connection counts from its own event") {
  CHECK(first_failure({1000, 50'000, 40}, [](const operations& sequence) {
          exchange one;
          for (const operation& o : sequence)
            one.apply(o);
        }) == "");
}
