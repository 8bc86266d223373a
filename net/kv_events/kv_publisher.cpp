#include "net/kv_events/kv_publisher.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "config/base/log.hpp"
#include "net/kv_events/kv_wire.hpp"

namespace twill::net {
namespace {

using std::chrono::milliseconds;

/// Events that arrive within this time go into one message.
constexpr milliseconds gathering{5};
/// Minimum time between two snapshots of the whole cache.
constexpr std::chrono::seconds between_snapshots{1};
/// In each period of `patience_lasts`, the publisher waits at most `patience` in total for
/// subscribers whose queues are full.
constexpr std::chrono::seconds patience{3}, patience_lasts{30};
/// Subscriptions that are read before events are sent again.
constexpr int most_subscriptions = 1000;
/// A subscriber that sends a longer subscription is disconnected.
constexpr std::int64_t longest_subscription = 1024;

double unix_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// Wakes a thread that polls for file descriptors.
class wake_event {
public:
  wake_event() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::runtime_error("`kv.events`: no event descriptor can be had");
  }
  ~wake_event() { ::close(descriptor_); }
  wake_event(const wake_event&) = delete;
  wake_event& operator=(const wake_event&) = delete;
  int descriptor() const { return descriptor_; }
  void notify() const { [[maybe_unused]] const int full = ::eventfd_write(descriptor_, 1); }
  void reset() const {
    eventfd_t count = 0;
    [[maybe_unused]] const int empty = ::eventfd_read(descriptor_, &count);
  }

private:
  int descriptor_;
};

class zmq_publisher final : public kv_publisher {
public:
  zmq_publisher(const config::kv_event_options& options,
                std::shared_ptr<actors::kv_event_source> source)
      : topic_(options.topic),
        form_(options.format == "array" ? kv_event_form::array : kv_event_form::map),
        source_(std::move(source)) {
    try {
      bind(options.endpoint);
      endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
    } catch (const zmq::error_t& error) {
      throw std::runtime_error("`kv.events` must be an address that can be bound, got \"" +
                               options.endpoint + "\": " + error.what());
    }
    thread_ = std::thread([this] { run(); });
    source_->on_events([this] { wake_event_.notify(); });
  }

  ~zmq_publisher() override {
    source_->on_events(nullptr);
    stopping_ = true;
    wake_event_.notify();
    thread_.join();
  }

  std::string endpoint() const override { return endpoint_; }

private:
  using clock = std::chrono::steady_clock;

  void bind(const std::string& endpoint) {
    socket_ = zmq::socket_t(context_, zmq::socket_type::xpub);
    socket_.set(zmq::sockopt::sndhwm, most_queued);
    socket_.set(zmq::sockopt::rcvhwm, most_queued);
    socket_.set(zmq::sockopt::maxmsgsize, longest_subscription);
    socket_.set(zmq::sockopt::linger, 0);
    // IPv6 is enabled only for IPv6 addresses; otherwise 127.0.0.1 would appear as
    // ::ffff:127.0.0.1.
    socket_.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos);
    // Report each subscriber, even if the topic is known already.
    socket_.set(zmq::sockopt::xpub_verbose, true);
    socket_.set(zmq::sockopt::xpub_nodrop, true); // fail to send a message if a queue is full
    socket_.bind(endpoint);
  }

  void run() {
    while (!stopping_) {
      try {
        serve();
      } catch (const std::exception& error) {
        log::error("`kv.events`: " + std::string(error.what()) + "; trying again");
        broken_ = true;
        std::this_thread::sleep_for(between_snapshots);
      }
    }
    send_end();
  }

  void serve() {
    if (broken_) begin_again();
    wait();
    if (stopping_) return;
    read_subscriptions();
    const bool anew = anew_ && clock::now() >= anew_from_;
    const auto taken = source_->take(anew);
    if (taken.lost) ++next_number_;
    if (taken.anew) {
      anew_ = false;
      anew_from_ = clock::now() + between_snapshots;
    }
    for (const auto& payload : kv_payloads(taken.events, unix_now(), form_))
      if (!send(payload)) return;
    std::this_thread::sleep_for(gathering);
  }

  /// Creates the socket again. Subscribers that read reconnect by themselves and get a snapshot;
  /// subscribers that do not read stay disconnected.
  void begin_again() {
    ++next_number_;
    socket_.close();
    // ZeroMQ closes the old socket later on its own thread, so binding may fail at first.
    for (int tries = 1;; ++tries) {
      std::this_thread::sleep_for(milliseconds(10));
      try {
        bind(endpoint_);
        break;
      } catch (const zmq::error_t&) {
        if (tries >= 50 || stopping_) throw;
      }
    }
    broken_ = false;
  }

  /// Waits for events, for a subscriber, or until a snapshot is due.
  void wait() {
    std::array<zmq::pollitem_t, 2> items{
        {{socket_.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, wake_event_.descriptor(), ZMQ_POLLIN, 0}}};
    milliseconds time{-1};
    if (anew_)
      time = std::max(std::chrono::ceil<milliseconds>(anew_from_ - clock::now()), milliseconds(0));
    zmq::poll(items.data(), items.size(), time);
    wake_event_.reset();
  }

  void read_subscriptions() {
    zmq::message_t message;
    for (int i = 0; i < most_subscriptions && socket_.recv(message, zmq::recv_flags::dontwait);
         ++i) {
      const auto text = message.to_string_view();
      if (text.starts_with('\1') && topic_.starts_with(text.substr(1))) anew_ = true;
    }
  }

  /// Sends one message to all subscribers. Returns false, and sends it to none, if the queue of
  /// some subscriber is full.
  bool offer(std::string_view payload) {
    const std::string number = kv_sequence(next_number_);
    if (!socket_.send(zmq::buffer(topic_), zmq::send_flags::sndmore | zmq::send_flags::dontwait))
      return false;
    socket_.send(zmq::buffer(number), zmq::send_flags::sndmore);
    socket_.send(zmq::buffer(payload), zmq::send_flags::none);
    return true;
  }

  /// Sends one message so that no subscriber misses it. Returns false if a subscriber has not read
  /// for too long; then all subscribers are disconnected, since ZeroMQ cannot disconnect a single
  /// one.
  bool send(std::string_view payload) {
    for (; !offer(payload); std::this_thread::sleep_for(milliseconds(1))) {
      const auto now = clock::now();
      if (now >= patience_.since + patience_lasts) patience_ = {now, {}};
      patience_.waited += milliseconds(1);
      if (stopping_) return false;
      if (patience_.waited < patience) continue;
      log::warn("`kv.events`: a subscriber does not read; all are cut off, and may come back");
      patience_ = {now, {}};
      broken_ = true;
      return false;
    }
    ++next_number_;
    return true;
  }

  /// Sends AllBlocksCleared when the daemon ends, if the queues have room.
  void send_end() {
    if (broken_) return;
    try {
      const actors::kv_event cleared;
      const auto payload = kv_payloads({&cleared, 1}, unix_now(), form_).front();
      for (int tries = 0; tries < 50 && !offer(payload); ++tries)
        std::this_thread::sleep_for(milliseconds(2));
      socket_.set(zmq::sockopt::linger, 200);
    } catch (const std::exception& error) {
      log::warn("`kv.events`: " + std::string(error.what()));
    }
  }

  const std::string topic_;
  const kv_event_form form_;
  const std::shared_ptr<actors::kv_event_source> source_;
  zmq::context_t context_{1};
  zmq::socket_t socket_; ///< used only by `thread_` once that runs
  std::string endpoint_;
  wake_event wake_event_;
  std::uint64_t next_number_ = 0;
  bool anew_ = false;   ///< a snapshot is due
  bool broken_ = false; ///< the socket must be created again
  clock::time_point anew_from_{};
  struct {
    clock::time_point since{};
    clock::duration waited{};
  } patience_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

} // namespace

std::unique_ptr<kv_publisher> kv_publisher::bind(const config::kv_event_options& options,
                                                 std::shared_ptr<actors::kv_event_source> source) {
  return std::make_unique<zmq_publisher>(options, std::move(source));
}

} // namespace twill::net
