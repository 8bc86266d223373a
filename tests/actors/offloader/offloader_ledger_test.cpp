// offloader_core, which moves KV blocks between host memory and disk, under random calls, over a
// disk that fails at times. A fetch asks for a list of blocks. It is answered once, with as many
// blocks from the start of the list as could be brought to host memory in time. At the end, the
// only blocks that still take host memory are those that kv_tiers, the index of the blocks, lists
// there.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "actors/kv/cache_scope.hpp"
#include "actors/offloader/offloader_core.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/faulty_store.hpp"
#include "tests/support/few_lines.hpp"
#include "tests/support/operations.hpp"

namespace {

using namespace twill::actors;
using namespace twill::test;
using namespace std::chrono_literals;
namespace offload = twill::models::offload;
using clock_type = std::chrono::steady_clock;

constexpr std::int32_t n_on_their_way = 16; ///< places beside those of the host tier

template <class F>
bool eventually(F&& done) {
  for (int i = 0; i < 20'000 && !done(); ++i)
    std::this_thread::sleep_for(1ms);
  return done();
}

class offloader_and_ledger {
public:
  explicit offloader_and_ledger(const operation& shape) : host_blocks_(shape.a % 6) {
    tier_options o;
    o.block_bytes = 64;
    o.block_tokens = 2;
    o.device_blocks = 8;
    o.host_bytes = 8192 * host_blocks_;
    o.disk_bytes = 8192 * (shape.b % 4 == 0 && host_blocks_ > 0 ? 0 : 1 + shape.b % 24);
    o.keep = shape.kind % 2 == 0;
    o.open_store = [faults =
                        faults_]() -> twill::models::result<std::unique_ptr<offload::disk_store>> {
      return std::unique_ptr<offload::disk_store>(std::make_unique<faulty_store>(faults));
    };
    // A disk that has less room than the tiers expect.
    if (shape.c % 3 == 0) faults_->capacity = 8192 * 3;
    reads_ahead_ = shape.c % 2 == 0;
    // True if blocks move only when a call asks for it. With other settings, blocks are also
    // written to disk unasked, or blocks that a fetch has brought to host memory evict blocks that
    // the same fetch has yet to read.
    keeps_what_it_has_ = host_blocks_ == 0 && !o.keep && !reads_ahead_ && shape.c % 3 != 0;
    core_ = std::make_shared<offloader_core>(o, std::make_shared<offload::tier_resources>());
    core_->open();
    demand(eventually([&] { return core_->tiers()->take_place() != nullptr; }),
           "the tiers do not open");
  }
  ~offloader_and_ledger() { core_->stop(); }

  void apply(const operation& o) {
    const std::uint32_t what = o.kind % 16;
    if (what < 6)
      spill(o);
    else if (what < 12)
      fetch(o, keys_of(o));
    else if (what < 13 && reads_ahead_)
      core_->prefetch(keys_of(o));
    else if (what < 15)
      fetch_all(o);
    else
      faults_->fail_read = o.a % 3 == 0 ? faults_->reads + o.b % 4 : -1;
  }

  void end() {
    rest();
    const std::lock_guard lock(answers_->mutex);
    demand_equal(answers_->given.size(), n_fetches_, "the number of answers");
    demand(answers_->wrong.empty(), answers_->wrong);
    const std::vector<bool> once(n_fetches_, true);
    demand(answers_->answered == once, "a fetch is answered twice");
  }

private:
  struct answers {
    std::mutex mutex;
    std::vector<std::size_t> given;
    std::vector<bool> answered;
    std::size_t n_blocks = 0; ///< how many blocks the last answer had
    std::string wrong;
  };

  /// Waits until no operation is under way. Then each fetch must have been answered, and the only
  /// blocks that take host memory must be those that kv_tiers, the index of the blocks, lists
  /// there.
  void rest() const {
    demand(eventually([&] {
             const std::lock_guard lock(answers_->mutex);
             return answers_->given.size() >= n_fetches_;
           }),
           "a fetch has no answer");
    demand(eventually([&] { return free_places() == all_places() - host_index(); }),
           "host memory is held by nothing in the index");
    std::string faults;
    demand(eventually([&] {
             twill::ledger all;
             core_->tiers()->account(all);
             faults = all.faults().empty() ? "" : all.faults().front();
             return faults.empty() && all.is_at_rest();
           }),
           faults);
  }
  std::int64_t all_places() const { return host_blocks_ + n_on_their_way; }
  std::int64_t host_index() const { return core_->tiers()->counts().host_blocks; }
  std::int64_t free_places() const {
    std::vector<host_block> taken;
    while (host_block one = core_->tiers()->take_place())
      taken.push_back(std::move(one));
    return static_cast<std::int64_t>(taken.size());
  }

  static std::vector<block_identity> prefix_of(const operation& o) {
    std::vector<block_identity> blocks;
    block_key parent = root_key(0);
    for (std::uint32_t i = 0; i < 1 + o.b % 6; ++i) {
      block_identity one;
      one.parent = parent;
      one.tokens = {static_cast<std::int32_t>(o.a >> i & o.c >> i & 1), 0};
      one.key = parent = key_after(scope_key(), parent, one.tokens);
      blocks.push_back(std::move(one));
    }
    return blocks;
  }
  static std::vector<block_key> keys_of(const operation& o) {
    std::vector<block_key> keys;
    for (const block_identity& one : prefix_of(o))
      keys.push_back(one.key);
    return keys;
  }

  void spill(const operation& o) {
    std::vector<std::pair<block_identity, host_block>> blocks;
    for (block_identity& one : prefix_of(o)) {
      host_block to = core_->tiers()->take_place();
      if (to == nullptr) break;
      std::memcpy(to.get(), &one.key, sizeof one.key);
      blocks.emplace_back(std::move(one), std::move(to));
    }
    core_->spill(std::move(blocks));
  }

  /// While the disk works and no other fetch runs, a fetch brings every block that the tiers have.
  void fetch_all(const operation& o) {
    faults_->fail_read = -1;
    rest();
    std::vector<std::int32_t> tokens;
    for (const block_identity& one : prefix_of(o))
      tokens.insert(tokens.end(), one.tokens.begin(), one.tokens.end());
    std::vector<block_key> found;
    core_->tiers()->match(root_key(0), tokens, clock_type::now(), found);
    fetch({0, 0, 0, 1}, found);
    rest();
    const std::lock_guard lock(answers_->mutex);
    if (keeps_what_it_has_)
      demand_equal(answers_->n_blocks, found.size(), "the blocks that a fetch brings");
  }

  void fetch(const operation& o, const std::vector<block_key>& keys) {
    const std::size_t number = n_fetches_++;
    {
      const std::lock_guard lock(answers_->mutex);
      answers_->answered.resize(n_fetches_, false);
    }
    const auto until = clock_type::now() + (o.c % 8 == 0 ? 0ms : 1h);
    core_->fetch(keys, until, [to = answers_, number, keys](offloader_core::fetched got) {
      const std::lock_guard lock(to->mutex);
      to->given.push_back(number);
      to->answered[number] = true;
      to->n_blocks = got.blocks.size();
      if (got.blocks.size() > keys.size()) to->wrong = "more blocks than asked for";
      for (std::size_t i = 0; i < std::min(got.blocks.size(), keys.size()); ++i)
        if (got.blocks[i] == nullptr ||
            std::memcmp(got.blocks[i].get(), &keys[i], sizeof keys[i]) != 0)
          to->wrong = "a fetch brings another block";
      if (got.seconds < 0) to->wrong = "a fetch took less than no time";
    });
  }

  std::int64_t host_blocks_;
  bool reads_ahead_ = false, keeps_what_it_has_ = false;
  std::shared_ptr<store_faults> faults_ = std::make_shared<store_faults>();
  std::shared_ptr<offloader_core> core_;
  std::size_t n_fetches_ = 0;
  std::shared_ptr<answers> answers_ = std::make_shared<answers>();
};

} // namespace

TEST_CASE("each fetch is answered once, and nothing holds host memory at rest", "[actors]") {
  const twill::test::few_lines few;
  CHECK(first_failure({150, 4'000, 60}, [](const operations& sequence) {
          if (sequence.empty()) return;
          offloader_and_ledger both(sequence.front());
          for (std::size_t i = 1; i < sequence.size(); ++i)
            both.apply(sequence[i]);
          both.end();
        }) == "");
}
