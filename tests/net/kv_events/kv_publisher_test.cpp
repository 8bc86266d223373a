// The publisher of KV events with ZeroMQ's own subscribers on loopback, one of which does not read.
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>
#include <zmq_addon.hpp>

#include "actors/port/kv_events.hpp"
#include "net/kv_events/kv_publisher.hpp"
#include "tests/catch.hpp"

using namespace twill;
using actors::kv_event;
using actors::kv_medium;
using json = nlohmann::json;
using namespace std::chrono_literals;

namespace {

struct message {
  std::string topic;
  std::uint64_t number = 0;
  json events;
};

class subscriber {
public:
  explicit subscriber(const std::string& endpoint, const std::string& topic = "", int most = 0)
      : socket_(context_, zmq::socket_type::sub) {
    socket_.set(zmq::sockopt::rcvhwm, most);
    if (most > 0) socket_.set(zmq::sockopt::rcvbuf, 4096);
    socket_.set(zmq::sockopt::rcvtimeo, 20000);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.connect(endpoint);
    socket_.set(zmq::sockopt::subscribe, topic);
  }
  message next() {
    std::vector<zmq::message_t> frames;
    const auto n = zmq::recv_multipart(socket_, std::back_inserter(frames));
    REQUIRE(n.has_value());
    REQUIRE(*n == 3);
    message got{frames[0].to_string(), 0, json::from_msgpack(frames[2].to_string())[1]};
    REQUIRE(frames[1].size() == 8);
    for (const char byte : frames[1].to_string())
      got.number = got.number << 8 | static_cast<unsigned char>(byte);
    return got;
  }
  /// All events up to the first of this type and, if a block is given, of this block.
  std::vector<json> until(const std::string& type, std::optional<std::uint64_t> block = {}) {
    std::vector<json> all;
    for (;;) {
      const auto got = next();
      numbers.push_back(got.number);
      for (const auto& event : got.events) {
        all.push_back(event);
        if (event["type"] == type && (!block || event["block_hashes"][0] == *block)) return all;
      }
    }
  }
  std::vector<std::uint64_t> numbers;

private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

/// Makes events as the engine does, of at most `most` events at once.
class scripted_source final : public actors::kv_event_source {
public:
  explicit scripted_source(std::size_t most = 1'000'000) : most_(most) {}

  void stored(std::uint64_t name, std::uint64_t parent = 0, kv_medium medium = kv_medium::device) {
    actors::kv_block block{
        name, {}, std::vector<std::int32_t>(16, static_cast<std::int32_t>(name))};
    if (parent != 0) block.parent = parent;
    const std::lock_guard lock(mutex_);
    blocks_[name] = {actors::kv_event_kind::stored, medium,
                     std::make_shared<const actors::kv_block>(std::move(block))};
    note(blocks_[name]);
  }
  void removed(std::uint64_t name) {
    const std::lock_guard lock(mutex_);
    auto event = blocks_.at(name);
    blocks_.erase(name);
    event.kind = actors::kv_event_kind::removed;
    note(event);
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    blocks_.clear();
    note({});
  }

  actors::kv_events take(bool everything) override {
    const std::lock_guard lock(mutex_);
    woken_ = false;
    const bool lost = std::exchange(lost_, false);
    actors::kv_events taken{std::exchange(waiting_, {}), everything || lost, lost};
    if (!taken.anew) return taken;
    taken.events.assign(1, {});
    for (const auto& [name, event] : blocks_) // parents come first, since their names are lower
      taken.events.push_back(event);
    return taken;
  }
  void on_events(std::function<void()> waker) override {
    const std::lock_guard lock(mutex_);
    waker_ = std::move(waker);
    if (waker_ && !waiting_.empty()) waker_();
  }

private:
  void note(const kv_event& event) {
    lost_ = lost_ || waiting_.size() >= most_;
    if (lost_)
      waiting_.clear();
    else
      waiting_.push_back(event);
    if (waker_ && !std::exchange(woken_, true)) waker_();
  }

  const std::size_t most_;
  std::mutex mutex_;
  std::map<std::uint64_t, kv_event> blocks_;
  std::vector<kv_event> waiting_;
  bool lost_ = false, woken_ = false;
  std::function<void()> waker_;
};

std::unique_ptr<net::kv_publisher> publish(const std::shared_ptr<scripted_source>& blocks,
                                           const std::string& topic = "") {
  return net::kv_publisher::bind({"tcp://127.0.0.1:0", topic, "map"}, blocks);
}

} // namespace

TEST_CASE("A new subscriber gets a snapshot, and then events") {
  const auto blocks = std::make_shared<scripted_source>();
  blocks->clear();
  blocks->stored(1);
  blocks->stored(2, 1, kv_medium::host);
  auto publisher = publish(blocks, "kv@me@model");
  subscriber first(publisher->endpoint(), "kv@me");
  const auto there = first.until("BlockStored", 2);
  REQUIRE(there.size() >= 3);
  CHECK(there.end()[-3]["type"] == "AllBlocksCleared");
  CHECK(there.end()[-2]["block_hashes"][0] == 1);
  CHECK(there.back()["parent_block_hash"] == 1);
  CHECK(there.back()["medium"] == "CPU");
  blocks->removed(2);
  CHECK(first.until("BlockRemoved").size() == 1);
  // Another subscriber connects: both get the snapshot, and the first forgets nothing.
  subscriber second(publisher->endpoint(), "");
  CHECK(second.until("BlockStored", 1).size() == 2);
  CHECK(first.until("BlockStored", 1).size() == 2);
  blocks->clear();
  CHECK(first.until("AllBlocksCleared").size() == 1);
  for (std::size_t i = 1; i < first.numbers.size(); ++i)
    CHECK(first.numbers[i] == first.numbers[i - 1] + 1);
}

TEST_CASE("A publisher that ends sends AllBlocksCleared and frees its address") {
  const auto blocks = std::make_shared<scripted_source>();
  blocks->clear();
  auto publisher = publish(blocks);
  const auto endpoint = publisher->endpoint();
  blocks->stored(1);
  subscriber one(endpoint);
  one.until("BlockStored", 1);
  publisher.reset();
  CHECK(one.until("AllBlocksCleared").size() == 1);
  publisher = net::kv_publisher::bind({endpoint, "", "map"}, blocks);
  CHECK(one.until("BlockStored", 1).size() == 2); // the subscriber has reconnected by itself
}

TEST_CASE("Dropped events skip a number and are followed by a snapshot") {
  const auto blocks = std::make_shared<scripted_source>(50);
  blocks->clear();
  auto publisher = publish(blocks);
  subscriber one(publisher->endpoint());
  one.until("AllBlocksCleared");
  const auto before = one.numbers.back();
  for (std::uint64_t i = 1; i <= 2000; ++i)
    blocks->stored(i);
  std::size_t n = 0;
  for (std::uint64_t i = 1; i <= 2000; ++i)
    blocks->removed(i);
  blocks->stored(5000);
  n = one.until("BlockStored", 5000).size();
  CHECK(n > 0);
  CHECK(one.numbers.back() > before + 1);
  std::this_thread::sleep_for(20ms);
  blocks->stored(5001);
  CHECK(one.until("BlockStored", 5001).size() == 1);
}

TEST_CASE("A subscriber that does not read is cut off, and gets a snapshot once it reads") {
  const auto blocks = std::make_shared<scripted_source>(1 << 20);
  blocks->clear();
  auto publisher = publish(blocks);
  subscriber slow(publisher->endpoint(), "", 1), quick(publisher->endpoint());
  slow.until("AllBlocksCleared");
  quick.until("AllBlocksCleared");
  // 120 MB of events, which is more than the queue and the sockets hold.
  std::uint64_t name = 0;
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 5000; ++i) {
      blocks->stored(++name);
      blocks->removed(name);
    }
    blocks->stored(++name);
    quick.until("BlockStored", name);
  }
  std::size_t n_gaps = 0;
  for (std::size_t i = 1; i < quick.numbers.size(); ++i)
    n_gaps += quick.numbers[i] != quick.numbers[i - 1] + 1 ? 1 : 0;
  CHECK(n_gaps == 1); // all subscribers were cut off, once
  slow.until("BlockStored", name);
  blocks->stored(++name);
  CHECK(slow.until("BlockStored", name).size() == 1);
}

TEST_CASE("An address that is taken is refused by name") {
  const auto blocks = std::make_shared<scripted_source>();
  const auto publisher = publish(blocks);
  REQUIRE_THROWS_WITH(net::kv_publisher::bind({publisher->endpoint(), "", "map"}, blocks),
                      Catch::Contains("`kv.events`") && Catch::Contains("in use"));
}
