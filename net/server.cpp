#include "net/server.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <mutex>
#include <netinet/in.h>
#include <new>
#include <optional>
#include <stdexcept>
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
#include "net/connection/arrival.hpp"
#include "net/error_map.hpp"
#include "net/http/http_session.hpp"
#include "net/kv_events/kv_publisher.hpp"
#include "net/protocol/model_lookup.hpp"
#include "net/protocol/openai/stored_responses.hpp"
#include "net/protocol/stored_reading.hpp"
#include "net/stored/stored_api.hpp"
#include "net/stored/stored_service.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace twill::net {
namespace {

using std::chrono::milliseconds;

/// The kernel buffers this many unsent bytes per socket; the write queue bounds the rest.
constexpr int send_buffer_bytes = 256 * 1024;
constexpr milliseconds accept_pause{
    100}; ///< before accept is retried when there are no file descriptors
constexpr milliseconds drain_poll{20};
constexpr milliseconds sample_interval{1000}; ///< interval at which the figures of the dashboard
                                              ///< are sampled
constexpr milliseconds flush_grace{1200};     ///< time for the last frames to be sent

/// A larger file is not a PEM file.
constexpr std::int64_t max_pem_bytes = 1 << 20;

std::optional<ip_address> address_of(const asio::generic::stream_protocol::endpoint& peer) {
  const auto* raw = static_cast<const sockaddr*>(peer.data());
  if (raw->sa_family == AF_INET)
    return ip_address::from_v4(reinterpret_cast<const std::uint8_t*>(
        &reinterpret_cast<const sockaddr_in*>(raw)->sin_addr));
  if (raw->sa_family == AF_INET6)
    return ip_address::from_v6(reinterpret_cast<const std::uint8_t*>(
        &reinterpret_cast<const sockaddr_in6*>(raw)->sin6_addr));
  return std::nullopt;
}

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
                 [this](const stored_head& head) { return ask_again(head); }}),
        io_(options.server.threads),
        workers_({1, body_budget(options.server), std::chrono::hours(1)}),
        control_(asio::make_strand(io_)), sockets_(std::move(sockets)),
        agent_(control_, sockets_.agent, [this] { return line_of_agent(); }),
        drain_timer_(control_), relief_timer_(control_), sample_timer_(control_),
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
      return find_previous(id, tenant);
    };
    context_.run_on_worker = [this](fair_pool::task work) {
      work.run = tolerant(std::move(work.run));
      return workers_.add(std::move(work));
    };
    context_.waiting_for_worker = [this] { return workers_.waiting_bytes(); };
    context_.output.on_full([this] { asio::post(control_, [this] { relieve_output(); }); });
    if (!options.server.tls_certificate.empty())
      tls_.emplace(options.server.tls_certificate, options.server.tls_key, read);
    publish_kv_events();
    add_entrances(sockets_.clients, false);
    add_entrances(sockets_.admin, true);
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
    return tls_ ? tls_->reload(read) : std::string();
  }
  void reload(const config::options& options) override { context_.current.replace(options); }
  void on_reload(std::function<std::pair<bool, std::string>()> work) override {
    context_.reload = std::move(work);
  }
  void trace_with(tracer& traces) override { context_.traces = &traces; }

  void run() override {
    batches_.begin();
    asio::post(control_, [this] {
      for (const auto& one : entrances_)
        accept(*one);
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

  using acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

  /// One address on which clients are accepted.
  struct entrance {
    entrance(acceptor a, const asio::strand<asio::io_context::executor_type>& control,
             listener_kind kind)
        : gate(std::move(a)), pause(control), listener(kind) {}
    acceptor gate;
    asio::steady_timer pause;
    listener_kind listener;
  };

  void add_entrances(listeners& sockets, bool admin) {
    for (std::size_t i = 0; i < sockets.all().size(); ++i) {
      const auto& one = sockets.all()[i];
      auto listener = listener_kind::clients;
      if (admin)
        listener =
            one.family == AF_UNIX ? listener_kind::admin_socket : listener_kind::admin_address;
      const asio::generic::stream_protocol protocol(one.family, 0);
      entrances_.push_back(std::make_unique<entrance>(acceptor(control_, protocol, sockets.take(i)),
                                                      control_, listener));
    }
  }

  /// A late callback of the engine checks here whether the server still exists.
  struct lifeline {
    std::mutex mutex;
    server_impl* owner = nullptr;
  };

  remembered_ptr find_previous(const std::string& id, const std::string& tenant) const {
    if (auto warmed_up = context_.responses.find(id, tenant, 0)) return warmed_up;
    if (api_of(id) != stored_api::responses) return nullptr;
    const auto found = stored_.find(id, tenant);
    if (!found || found->running) return nullptr;
    const auto turn = stored_turn(*found->head, context_.engine);
    return turn.ok() ? remember_stored(turn.value(), found->bytes->records) : nullptr;
  }

  /// Builds a request from a stored request again, to resume it.
  result<actors::request> ask_again(const stored_head& head) const {
    const auto current = context_.current.get();
    if (!current->keys.has_key(head.tenant)) return fail(unknown_key());
    const auto model = find_model(context_.engine, value_object{{"model", head.model}},
                                  current->tenant(head.tenant));
    if (!model.ok()) return fail(model.code());
    return ask_anew(head, {model.value(), current->limits, context_.engine, context_.find_previous,
                           head.tenant, context_.options.server.name});
  }

  /// The reply to a load balancer's agent check. The number of slots is the sum of
  /// `scheduler.max_running` of all models.
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

  void accept(entrance& at) {
    if (!at.gate.is_open()) return;
    at.gate.async_accept(asio::make_strand(io_),
                         [this, &at](error_code error, client_socket socket) {
                           if (error == asio::error::operation_aborted) return;
                           if (error) return retry_accept(at, error);
                           if (at.listener == listener_kind::clients)
                             adopt(std::move(socket));
                           else
                             adopt_administrator(std::move(socket), at.listener);
                           accept(at);
                         });
  }

  void retry_accept(entrance& at, error_code error) {
    log::warn("accept: " + error.message());
    at.pause.expires_after(accept_pause);
    at.pause.async_wait([this, &at](error_code cancelled) {
      if (!cancelled) accept(at);
    });
  }

  void adopt(client_socket socket) {
    error_code ignored;
    const auto& options = context_.options.server;
    client_origin origin{address_of(socket.remote_endpoint(ignored))};
    origin.trusted_proxy = context_.proxies.trusts(origin.address);
    // Connections of a trusted proxy are counted for the clients behind the proxy.
    const auto counted =
        origin.trusted_proxy ? std::string() : counted_as(origin, options.max_per_address);
    auto slot = context_.sockets.admit(counted);
    if (!slot.has_value()) {
      log::warn("a connection of " + origin.text() +
                " was closed at once: `server.max_connections` or `server.max_per_address` is "
                "reached");
      return;
    }
    arriving_client client{std::move(socket), std::move(*slot), std::move(origin)};
    client.proxy_header = options.proxy_protocol && client.origin.trusted_proxy;
    if (tls_) client.tls = tls_->current();
    begin(std::move(client));
  }

  /// The administrators' listener has no proxy in front of it, and its Unix socket needs no TLS.
  void adopt_administrator(client_socket socket, listener_kind listener) {
    error_code ignored;
    client_origin origin{address_of(socket.remote_endpoint(ignored)), false, listener};
    auto slot = context_.admin_sockets.admit({});
    if (!slot.has_value())
      return log::warn("a connection to `server.admin_listen` was closed at once: " +
                       std::to_string(max_admin_sockets) + " are open");
    arriving_client client{std::move(socket), std::move(*slot), std::move(origin)};
    if (tls_ && listener == listener_kind::admin_address) client.tls = tls_->current();
    begin(std::move(client));
  }

  void begin(arriving_client client) {
    error_code ignored;
    if (client.origin.address.has_value()) client.socket.set_option(tcp::no_delay(true), ignored);
    client.socket.set_option(asio::socket_base::send_buffer_size(send_buffer_bytes), ignored);
    const auto strand = client.socket.get_executor();
    asio::post(strand, [this, client = std::move(client)]() mutable {
      if (client.proxy_header || client.tls) return receive_client(std::move(client), context_);
      start_http_session(client_stream(std::move(client.socket)), std::move(client.slot), context_,
                         std::move(client.origin));
    });
  }

  /// Disconnects clients that do not read, until the unread output fits its budget again.
  void relieve_output() {
    if (relieving_) return;
    if (const auto n = context_.output.relieve(std::chrono::steady_clock::now()); n > 0)
      log::warn("cut off " + std::to_string(n) +
                " clients that do not read their output: all output that waits is bounded by "
                "`server.max_output`");
    if (!context_.output.full() || stopping_) return return_memory();
    relieving_ = true;
    relief_timer_.expires_after(output_budget::relief_interval);
    relief_timer_.async_wait([this](error_code cancelled) {
      relieving_ = false;
      if (!cancelled) relieve_output();
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

  /// Large frames leave free memory in the heap, which malloc would otherwise keep for long.
  void return_memory() {
#ifdef __GLIBC__
    ::malloc_trim(0);
#endif
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
    error_code ignored;
    for (const auto& one : entrances_) {
      one->gate.close(ignored);
      one->pause.cancel();
    }
    agent_.stop();
    drain_timer_.cancel();
    relief_timer_.cancel();
    sample_timer_.cancel();
    for (const auto& one : context_.sessions.all())
      one->close_now();
    // The sessions close on their strands first, then their handlers run, and then this timer
    // fires.
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
  std::vector<std::unique_ptr<entrance>> entrances_;
  std::optional<tls_credentials> tls_;
  asio::steady_timer drain_timer_;
  asio::steady_timer relief_timer_;
  asio::steady_timer sample_timer_;
  std::shared_ptr<lifeline> alive_;
  rest_watch rest_; ///< guarded by the mutex of the lifeline
  asio::thread_pool batch_thread_;
  asio::steady_timer batch_timer_;
  batch_service batches_;
  std::atomic<bool> stopping_{false};
  bool drained_ = false;
  bool relieving_ = false;
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
