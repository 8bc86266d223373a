#include "net/server.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "config/base/fair_pool.hpp"
#include "config/base/log.hpp"
#include "net/admin/monitor.hpp"
#include "net/admin/rest_watch.hpp"
#include "net/admin/server_ledger.hpp"
#include "net/batch/batch_service.hpp"
#include "net/beast.hpp"
#include "net/connection/agent_check.hpp"
#include "net/connection/client_acceptor.hpp"
#include "net/connection/output_relief.hpp"
#include "net/kv_events/kv_publisher.hpp"
#include "net/stored/continuation.hpp"
#include "net/stored/stored_service.hpp"

namespace twill::net {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds drain_poll{20};
constexpr milliseconds sample_interval{1000}; ///< interval at which the figures of the dashboard
                                              ///< are sampled
constexpr milliseconds flush_grace{1200};     ///< time for the last frames to be sent

/// A larger file is not a PEM file.
constexpr std::int64_t max_pem_bytes = 1 << 20;

/// Wraps `work` so that std::bad_alloc does not end the process.
std::function<void()> tolerant(std::function<void()> work) {
  return [work = std::move(work)] {
    try {
      work();
    } catch (const std::bad_alloc&) {
      log::error("out of memory: the work of a request is dropped");
    }
  };
}

/// The budget for bodies being processed: 16 bodies of the largest size, like the budget for bodies
/// being received (see messages_in_budget).
std::int64_t body_budget(const config::server_options& options) {
  return 16 * options.max_body_bytes;
}

class server_impl final : public server {
public:
  server_impl(const config::options& options, actors::engine_port& engine, server_listeners sockets,
              const file_reader& read)
      : context_(options, engine), monitor_(engine, [this] { return context_.sockets.count(); }),
        stored_({engine, options.responses,
                 [this] { return context_.current.get()->keys.tenants(); },
                 [this] { return context_.current.get()->limits.request_timeout; },
                 [this](const stored_head& head) { return ask_again(context_, head); }}),
        io_(options.server.threads),
        workers_({1, body_budget(options.server), std::chrono::hours(1)}),
        control_(asio::make_strand(io_)), sockets_(std::move(sockets)),
        agent_(control_, sockets_.agent, [this] { return line_of_agent(); }),
        acceptor_(context_, io_, control_), drain_timer_(control_),
        relief_(context_, control_, stopping_), sample_timer_(control_),
        alive_(std::make_shared<lifeline>()), batch_thread_(1), batch_timer_(batch_thread_),
        batches_(context_, {[this](std::function<void()> work) {
                              asio::post(batch_thread_, tolerant(std::move(work)));
                            },
                            [this](milliseconds time) { wake_batches_after(time); }}) {
    alive_->owner = this;
    context_.batches = &batches_;
    context_.watched = &monitor_;
    context_.stored = &stored_;
    context_.find_previous = [this](const std::string& id, const std::string& tenant) {
      return find_continued(context_, stored_, id, tenant);
    };
    context_.run_on_worker = [this](fair_pool::task work) {
      work.run = tolerant(std::move(work.run));
      return workers_.add(std::move(work));
    };
    context_.waiting_for_worker = [this] { return workers_.waiting_bytes(); };
    context_.output.on_full([this] { asio::post(control_, [this] { relief_.begin(); }); });
    if (!options.server.tls_certificate.empty()) acceptor_.use_tls(options.server, read);
    publish_kv_events();
    acceptor_.listen(sockets_.clients, false);
    acceptor_.listen(sockets_.admin, true);
  }

  ~server_impl() override {
    {
      const std::lock_guard lock(alive_->mutex);
      alive_->owner = nullptr;
    }
    stored_.stop();
    batches_.stop();
    asio::post(batch_thread_, [this] { batch_timer_.cancel(); });
    batch_thread_.join();
  }

  std::vector<std::string> addresses() const override {
    std::vector<std::string> all;
    for (const auto& one : sockets_.clients.all())
      all.push_back(one.address());
    return all;
  }
  std::string admin_address() const override {
    return sockets_.admin.all().empty() ? std::string() : sockets_.admin.all().front().address();
  }
  std::string agent_address() const override {
    return sockets_.agent.all().empty() ? std::string() : sockets_.agent.all().front().address();
  }
  std::uint16_t port() const override {
    for (const auto& one : sockets_.clients.all())
      if (one.port != 0) return one.port;
    return 0;
  }
  std::string reload_certificate(const file_reader& read) override {
    return acceptor_.reload_certificate(read);
  }
  void reload(const config::options& options) override { context_.current.replace(options); }
  void on_reload(std::function<std::pair<bool, std::string>()> work) override {
    context_.reload = std::move(work);
  }
  void trace_with(tracer& traces) override { context_.traces = &traces; }

  void run() override {
    batches_.begin();
    asio::post(control_, [this] {
      acceptor_.begin();
      agent_.begin();
      if (!sockets_.admin.all().empty() || context_.options.debug.check_ledger) sample();
    });
    std::vector<std::thread> others;
    for (int i = 1; i < context_.options.server.threads; ++i)
      others.emplace_back([this] { serve(); });
    serve();
    for (auto& thread : others)
      thread.join();
  }

  void drain() override {
    if (context_.draining.exchange(true)) return;
    asio::post(control_, [this] { begin_drain(); });
  }

  void stop() override {
    if (stopping_.exchange(true)) return;
    context_.draining = true;
    asio::post(control_, [this] { close_all(); });
  }

private:
  /// If memory runs out, this socket is lost, but the server goes on.
  void serve() {
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::bad_alloc&) {
        log::error("out of memory: a connection is closed");
      }
    }
  }
  void publish_kv_events() {
    const auto& options = context_.options;
    for (const auto& feed : context_.engine.kv_events()) {
      const auto* of = &options.kv.events;
      for (const auto& model : options.models)
        if (model.key == feed.key) of = &model.kv_events;
      publishers_.push_back(kv_publisher::bind(*of, feed.source));
      const bool is_first = options.models.empty() || options.models.front().key == feed.key;
      if (is_first) context_.kv_events = publishers_.back().get();
      log::info("KV events of " + (feed.key.empty() ? "the model" : feed.key) + " at " +
                publishers_.back()->endpoint() + ": who can connect there reads all prompts");
    }
  }

  /// A late callback of the engine checks here whether the server still exists.
  struct lifeline {
    std::mutex mutex;
    server_impl* owner = nullptr;
  };

  /// The reply to a load balancer's agent check. The number of requests that may run at once is the
  /// sum of `scheduler.max_running` of all models.
  std::string line_of_agent() const {
    const bool takes_requests =
        !context_.draining && context_.engine.state() == actors::engine_state::ready;
    std::int64_t taken = 0, places = 0;
    for (const auto& [model, now] : context_.engine.stats_of_models()) {
      taken += std::int64_t{now.requests_running} + now.requests_waiting;
      places += context_.options.scheduler.max_running;
    }
    return agent_line(takes_requests, taken, places);
  }

  void wake_batches_after(milliseconds time) {
    batch_timer_.expires_after(time);
    batch_timer_.async_wait([this](error_code cancelled) {
      if (!cancelled) batches_.on_timer();
    });
  }

  /// Runs once a second where there is a listener for administrators, who look at the samples.
  void sample() {
    if (stopping_) return;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    monitor_.sample(std::chrono::duration_cast<milliseconds>(now).count());
    if (context_.options.debug.check_ledger) check_ledger();
    sample_timer_.expires_at(std::max(sample_timer_.expiry() + sample_interval,
                                      std::chrono::steady_clock::now() + sample_interval / 2));
    sample_timer_.async_wait([this](error_code cancelled) {
      if (!cancelled) sample();
    });
  }

  void check_ledger() {
    context_.engine.account([alive = alive_](ledger all) {
      const std::lock_guard lock(alive->mutex);
      auto* self = alive->owner;
      if (self == nullptr) return;
      self->batches_.account([alive, all = std::move(all)](const ledger& of_batches) mutable {
        all.add(of_batches, "");
        const std::lock_guard again(alive->mutex);
        if (alive->owner != nullptr) alive->owner->look_at(all);
      });
    });
  }

  /// The caller must hold the mutex of the lifeline.
  void look_at(ledger& all) {
    account(context_, all);
    for (const auto& fault : rest_.look(all))
      log::error("no request runs, and what they took does not add up: " + fault);
  }

  // --- shutdown; everything here runs on control_ ------------------------------------------------

  void begin_drain() {
    log::info("draining");
    batches_.stop();
    stored_.hand_over();
    context_.engine.drain([alive = alive_] {
      const std::lock_guard lock(alive->mutex);
      if (auto* self = alive->owner) asio::post(self->control_, [self] { self->on_drained(); });
    });
    for (const auto& one : context_.sessions.all())
      one->begin_drain();
    drain_timer_.expires_after(context_.current.get()->drain_timeout);
    drain_timer_.async_wait([this](error_code cancelled) {
      if (cancelled || drained_) return;
      log::warn("`server.drain_timeout` passed: ending the requests that are left");
      context_.engine.abort_all();
      on_drained();
    });
  }

  void on_drained() {
    if (drained_) return;
    drained_ = true;
    drain_timer_.cancel();
    for (const auto& one : context_.sessions.all())
      one->begin_drain(); // sockets accepted since the drain began
    await_sessions(std::chrono::steady_clock::now() + flush_grace);
  }

  /// Sessions close by themselves once their last bytes are written.
  void await_sessions(std::chrono::steady_clock::time_point until) {
    if (context_.sessions.size() == 0 || std::chrono::steady_clock::now() >= until)
      return close_all();
    drain_timer_.expires_after(drain_poll);
    drain_timer_.async_wait([this, until](error_code cancelled) {
      if (!cancelled) await_sessions(until);
    });
  }

  void close_all() {
    stored_.hand_over();
    acceptor_.close();
    agent_.stop();
    drain_timer_.cancel();
    relief_.stop();
    sample_timer_.cancel();
    for (const auto& one : context_.sessions.all())
      one->close_now();
    // close_now() has posted functions that close the sessions. They and the handlers that they
    // cause run before this timer fires.
    drain_timer_.expires_after(drain_poll);
    drain_timer_.async_wait([this](error_code) { io_.stop(); });
  }

  server_context context_;
  monitor monitor_;
  stored_service stored_; // declared before io_: sessions use it until they are destroyed
  asio::io_context io_;   // its destructor destroys the sessions, so it is destroyed before the
                          // context
  fair_pool workers_;
  asio::strand<asio::io_context::executor_type> control_;
  server_listeners sockets_;
  agent_check agent_;
  std::vector<std::unique_ptr<kv_publisher>> publishers_;
  client_acceptor acceptor_;
  std::atomic<bool> stopping_{false};
  asio::steady_timer drain_timer_;
  output_relief relief_;
  asio::steady_timer sample_timer_;
  std::shared_ptr<lifeline> alive_;
  rest_watch rest_; ///< guarded by the mutex of the lifeline
  asio::thread_pool batch_thread_;
  asio::steady_timer batch_timer_;
  batch_service batches_;
  bool drained_ = false;
};

} // namespace

std::unique_ptr<server> server::bind(const config::options& options, actors::engine_port& engine) {
  const auto& asked = options.server;
  return start(options, engine,
               {listeners::open(asked.listen),
                asked.admin_listen.empty()
                    ? listeners()
                    : listeners::open({asked.admin_listen}, "server.admin_listen"),
                listeners::open_agent(asked.agent_listen)},
               [](const std::string& path) { return read_file(path, max_pem_bytes); });
}

std::unique_ptr<server> server::start(const config::options& options, actors::engine_port& engine,
                                      server_listeners sockets, const file_reader& read) {
  return std::make_unique<server_impl>(options, engine, std::move(sockets), read);
}

} // namespace twill::net
