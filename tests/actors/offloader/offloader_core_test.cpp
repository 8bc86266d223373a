// offloader_core, which moves KV blocks between host memory and disk, over a disk whose transfers
// the test can hold back: which reads are made for which fetch, how many run at once, and what a
// stop waits for.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/kv/cache_scope.hpp"
#include "actors/offloader/kept_folder.hpp"
#include "actors/offloader/offloader_core.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/faulty_store.hpp"
#include "tests/models/support/temp_folder.hpp"

namespace {

using namespace twill::actors;
using namespace std::chrono_literals;
namespace offload = twill::models::offload;
using clock_type = std::chrono::steady_clock;

/// Holds up the reads of a disk while the gate is shut. They pass in the order in which they came.
struct gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool shut = false;
  std::int64_t passes = 0; ///< how many reads may pass while the gate is shut
  std::int64_t n_since_shut = 0;
  int n_reads = 0;

  void set(bool now_shut) {
    const std::lock_guard lock(mutex);
    shut = now_shut;
    passes = n_since_shut = 0;
    changed.notify_all();
  }
  void enter() {
    std::unique_lock lock(mutex);
    ++n_reads;
    const std::int64_t number = n_since_shut++;
    changed.wait(lock, [&] { return !shut || number < passes; });
  }
  void pass(std::int64_t n) {
    const std::lock_guard lock(mutex);
    passes += n;
    changed.notify_all();
  }
  std::int64_t waiting() {
    const std::lock_guard lock(mutex);
    return n_since_shut - std::min(passes, n_since_shut);
  }
  int reads() {
    const std::lock_guard lock(mutex);
    return n_reads;
  }
};

class gated_store final : public offload::disk_store {
public:
  explicit gated_store(std::shared_ptr<gate> g) : gate_(std::move(g)) {}
  twill::models::result<twill::nothing> write(std::int64_t offset, const void* from,
                                              std::int64_t bytes) override {
    return inner_.write(offset, from, bytes);
  }
  twill::models::result<twill::nothing> read(std::int64_t offset, void* to,
                                             std::int64_t bytes) override {
    gate_->enter();
    return inner_.read(offset, to, bytes);
  }
  std::string describe() const override { return "gated store"; }

private:
  std::shared_ptr<gate> gate_;
  twill::test::faulty_store inner_{std::make_shared<twill::test::store_faults>()};
};

template <class F>
bool eventually(F&& done) {
  for (int i = 0; i < 4000 && !done(); ++i)
    std::this_thread::sleep_for(5ms);
  return done();
}

/// Prefixes of `n_blocks` blocks each on disk, of which the last `host_blocks` are in host memory.
struct on_disk {
  explicit on_disk(std::int32_t n_prefixes, std::int32_t n_blocks = 8,
                   std::int32_t host_blocks = 0) {
    tier_options o;
    o.block_bytes = 64;
    o.host_bytes = 8192 * host_blocks;
    o.block_tokens = 4;
    o.device_blocks = 4000;
    o.disk_bytes = 8192 * 4000;
    o.open_store =
        [g = disk_gate]() -> twill::models::result<std::unique_ptr<offload::disk_store>> {
      return std::unique_ptr<offload::disk_store>(std::make_unique<gated_store>(g));
    };
    core = std::make_shared<offloader_core>(o, std::make_shared<offload::tier_resources>());
    core->open();
    REQUIRE(eventually([&] {
      const auto place = core->tiers()->take_place();
      return place != nullptr;
    }));
    for (std::int32_t p = 0; p < n_prefixes; ++p) {
      std::vector<std::pair<block_identity, host_block>> blocks;
      block_key parent = root_key(0);
      keys.emplace_back();
      for (std::int32_t i = 0; i < n_blocks; ++i) {
        block_identity one;
        one.parent = parent;
        one.tokens = {p, i, 0, 0};
        one.key = parent = key_after(scope_key(), parent, one.tokens);
        keys.back().push_back(one.key);
        host_block bytes = core->tiers()->take_place();
        REQUIRE(bytes != nullptr);
        bytes.get()[0] = static_cast<unsigned char>(p * 16 + i);
        blocks.emplace_back(std::move(one), std::move(bytes));
      }
      core->spill(std::move(blocks));
      const auto left = static_cast<std::uint64_t>(std::max(0, (p + 1) * n_blocks - host_blocks));
      REQUIRE(eventually([&] { return core->tiers()->counts().written == left; }));
    }
  }
  ~on_disk() {
    core->stop();
    disk_gate->set(false);
  }

  /// The result of a fetch of a prefix.
  struct outcome {
    std::mutex mutex;
    bool over = false;
    std::size_t n_blocks = 0;
    bool right = true;
    double seconds = 0;
  };
  std::shared_ptr<outcome> fetch(std::size_t p, std::chrono::milliseconds patience = 1h) {
    const auto got = std::make_shared<outcome>();
    core->fetch(keys[p], clock_type::now() + patience, [got, p](offloader_core::fetched answer) {
      const std::lock_guard lock(got->mutex);
      got->right = !got->over;
      got->over = true;
      got->n_blocks = answer.blocks.size();
      got->seconds = answer.seconds;
      for (std::size_t i = 0; i < answer.blocks.size(); ++i)
        got->right = got->right && answer.blocks[i].get()[0] == p * 16 + i;
    });
    return got;
  }
  static bool ended(const std::shared_ptr<outcome>& one) {
    return eventually([&] {
      const std::lock_guard lock(one->mutex);
      return one->over;
    });
  }

  std::shared_ptr<gate> disk_gate = std::make_shared<gate>();
  std::shared_ptr<offloader_core> core;
  std::vector<std::vector<block_key>> keys;
};

} // namespace

TEST_CASE("requests with the same prefix share its reads", "[actors]") {
  on_disk d(1);
  d.disk_gate->set(true);
  std::vector<std::shared_ptr<on_disk::outcome>> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(d.fetch(0));
  d.disk_gate->set(false);
  for (const auto& one : all) {
    REQUIRE(on_disk::ended(one));
    CHECK(one->n_blocks == 8);
    CHECK(one->right);
  }
  CHECK(d.disk_gate->reads() == 8);
  CHECK(d.core->tiers()->consistent());
}

TEST_CASE("fetches of a long queue take turns and are bounded", "[actors]") {
  on_disk d(12);
  d.disk_gate->set(true);
  std::vector<std::shared_ptr<on_disk::outcome>> all;
  for (std::size_t i = 0; i < 300; ++i)
    all.push_back(d.fetch(i % 12));
  // Fetches beyond `most_fetches` are answered at once, without blocks.
  for (std::size_t i = offloader_core::most_fetches; i < all.size(); ++i) {
    CHECK(all[i]->over);
    CHECK(all[i]->n_blocks == 0);
  }
  // Four I/O threads read the blocks of the first prefix first, but a thread may overtake the three
  // others. Each round lets the longest waiting of four reads pass. So at most three other reads
  // pass before the last of the first prefix's 8 reads, and all 8 have passed after 8 + 3 = 11
  // rounds.
  for (int i = 0; i < 11; ++i) {
    REQUIRE(eventually([&] { return d.disk_gate->waiting() == 4; }));
    d.disk_gate->pass(1);
  }
  REQUIRE(on_disk::ended(all[0]));
  CHECK(all[0]->n_blocks == 8);
  CHECK_FALSE(all[1]->over);
  std::this_thread::sleep_for(600ms);
  d.disk_gate->set(false);
  for (std::size_t i = 0; i < offloader_core::most_fetches; ++i) {
    REQUIRE(on_disk::ended(all[i]));
    CHECK(all[i]->n_blocks == 8);
    CHECK(all[i]->right);
  }
  // The time of a fetch does not include the time that it waited behind other fetches.
  CHECK(all[11]->seconds < 0.5);
}

TEST_CASE("a fetch ends in time with what has come, while any read ends", "[actors]") {
  on_disk d(6);
  d.disk_gate->set(true);
  const auto first = d.fetch(0, 50ms);
  std::vector<std::shared_ptr<on_disk::outcome>> others;
  for (std::size_t i = 1; i < 6; ++i)
    others.push_back(d.fetch(i, 50ms));
  std::this_thread::sleep_for(80ms);
  d.disk_gate->pass(3);
  REQUIRE(on_disk::ended(first));
  CHECK(first->n_blocks <= 3);
  for (const auto& one : others) {
    REQUIRE(on_disk::ended(one));
    CHECK(one->n_blocks == 0);
  }
}

TEST_CASE("what is read ahead is in host memory when its fetch comes", "[actors]") {
  on_disk d(3, 4, 8); // the first prefix is on disk, and host memory full
  d.core->prefetch(d.keys[0]);
  REQUIRE(eventually([&] { return d.core->tiers()->counts().from_disk == 4; }));
  d.disk_gate->set(true);
  const auto got = d.fetch(0);
  REQUIRE(on_disk::ended(got));
  CHECK(got->n_blocks == 4);
  CHECK(got->right);
  CHECK(d.disk_gate->reads() == 4);
}

TEST_CASE("a block whose read hangs is not found until it is there", "[actors]") {
  on_disk d(2, 2);
  d.disk_gate->set(true);
  const auto waits = d.fetch(0, 10ms);
  const auto ids_of_first = std::vector<std::int32_t>{0, 0, 0, 0, 0, 1, 0, 0};
  const auto n_found = [&] {
    std::vector<block_key> found;
    d.core->tiers()->match(root_key(0), ids_of_first, clock_type::now(), found);
    return found.size();
  };
  CHECK(n_found() == 2);
  CHECK(eventually([&] { return n_found() == 0; }));
  d.disk_gate->set(false);
  CHECK(on_disk::ended(waits));
  CHECK(eventually([&] { return n_found() == 2; }));
}

TEST_CASE("a stop does not wait until a large file was looked through", "[actors]") {
  const twill::test::temp_folder f;
  tier_options o;
  o.block_bytes = 64;
  o.block_tokens = 4;
  o.device_blocks = 4;
  o.disk_dir = f.path() + "/kv";
  o.keep = true;
  o.model_path = o.fingerprint = "m";
  o.disk_bytes = std::int64_t{1} << 40;
  REQUIRE(make_kept_folder(o.disk_dir).ok());
  const std::string path = kept_file(o.disk_dir, o.model_path, o.fingerprint);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(fd >= 0);
  const bool is_long = ::ftruncate(fd, o.disk_bytes) == 0; // room for 128 million places
  ::close(fd);
  if (!is_long) return; // the file system does not support such files
  const auto owned =
      std::make_shared<offloader_core>(o, std::make_shared<offload::tier_resources>());
  offloader_core& core = *owned;
  std::thread opens([&] { core.open(); });
  std::this_thread::sleep_for(50ms);
  const auto began = clock_type::now();
  core.stop();
  opens.join();
  CHECK(clock_type::now() - began < 10s);
  CHECK(offload::open_kept_store(path).ok()); // the file was closed
}

TEST_CASE("tiers that do not open hold no host memory", "[actors]") {
  const auto resources = std::make_shared<offload::tier_resources>();
  auto asked = std::make_shared<std::atomic<bool>>(false);
  tier_options o;
  o.block_bytes = 64;
  o.block_tokens = 2;
  o.device_blocks = 8;
  o.disk_bytes = 1 << 20;
  o.open_store = [asked]() -> twill::models::result<std::unique_ptr<offload::disk_store>> {
    *asked = true;
    return twill::models::failure{twill::models::errc::file_unwritable, "there is no disk"};
  };
  const auto core = std::make_shared<offloader_core>(o, resources);
  core->open();
  for (int i = 0; i < 20'000 && (!*asked || resources->host().taken() > 0); ++i)
    std::this_thread::sleep_for(1ms);
  CHECK(*asked);
  CHECK(resources->host().taken() == 0);
  core->stop();
}
