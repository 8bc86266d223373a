#include "actors/offloader/offloader_core.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "actors/kv/cache_scope.hpp"
#include "actors/offloader/kept_folder.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"

namespace twill::actors {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::int32_t n_threads = 4;
constexpr std::int32_t most_writers = 2;
constexpr std::int64_t most_staging_bytes = 256 * mib;
constexpr std::int32_t least_staging_blocks = 16;

std::int64_t stride_of(const tier_options& o) {
  return block_header_bytes + models::offload::store_aligned(o.block_bytes);
}

std::int32_t blocks_in(std::int64_t bytes, std::int64_t stride) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  return static_cast<std::int32_t>(std::min(bytes / stride, most));
}

kv_tiers::limits limits_of(const tier_options& o) {
  kv_tiers::limits l;
  if (!o.any()) return l;
  l.host_blocks = blocks_in(o.host_bytes, stride_of(o));
  l.disk_blocks = blocks_in(o.disk_bytes, stride_of(o));
  l.block_tokens = o.block_tokens;
  l.block_bytes = o.block_bytes;
  l.keep = o.keep && l.disk_blocks > 0;
  l.key = scope_key();
  return l;
}

models::result<std::unique_ptr<models::offload::disk_store>> open_unkept(const tier_options& o) {
  if (o.open_store) return o.open_store();
  auto folder = kept_folder_path(o.disk_dir);
  if (!folder.ok()) return folder.error();
  if (auto made = make_kept_folder(folder.value()); !made.ok()) return made.error();
  return models::offload::open_file_store(folder.value(), false);
}

models::result<models::offload::kept_store> open_kept(const tier_options& o,
                                                      std::int64_t most_bytes) {
  auto folder = kept_folder_path(o.disk_dir);
  if (!folder.ok()) return folder.error();
  if (auto made = make_kept_folder(folder.value()); !made.ok()) return made.error();
  remove_old_files(folder.value(), o.model_path, o.fingerprint);
  return models::offload::open_kept_store(kept_file(folder.value(), o.model_path, o.fingerprint),
                                          most_bytes);
}

} // namespace

/// The part that tasks own jointly: it outlives the core where a disk hangs.
struct offloader_core::disk : std::enable_shared_from_this<offloader_core::disk> {
  disk(std::shared_ptr<kv_tiers> t, std::unique_ptr<block_file> f)
      : tiers(std::move(t)), file(std::move(f)), threads(n_threads) {}

  std::shared_ptr<kv_tiers> tiers;
  std::unique_ptr<block_file> file;
  std::atomic<bool> said_read{false}, said_write{false};
  std::mutex mutex;
  std::deque<kv_tiers::write_order> to_write;
  std::int32_t writers = 0;
  std::mutex answer_mutex;
  std::unordered_map<std::uint64_t, answer> answers; ///< of fetches under way
  std::uint64_t next_answer = 0;
  io_threads threads; ///< last, so that it ends first

  std::uint64_t expect(answer done) {
    const std::lock_guard lock(answer_mutex);
    answers.emplace(++next_answer, std::move(done));
    return next_answer;
  }
  void give(std::uint64_t number, std::vector<host_block> blocks) {
    const std::lock_guard lock(answer_mutex);
    const auto found = answers.find(number);
    if (found == answers.end()) return;
    found->second(std::move(blocks));
    answers.erase(found);
  }
  /// No answer is given any more, also by threads that hang.
  void stop() {
    {
      const std::lock_guard lock(answer_mutex);
      answers.clear();
    }
    if (threads.stop()) file.reset(); // so that the next process may open it
  }

  void write(std::vector<kv_tiers::write_order> orders) {
    const std::lock_guard lock(mutex);
    for (auto& order : orders)
      to_write.push_back(std::move(order));
    while (writers < most_writers && writers < static_cast<std::int32_t>(to_write.size())) {
      ++writers;
      post([](disk& d) { d.write_all(); });
    }
  }

  /// Tasks hold the disk weakly while they wait and strongly while they run.
  template <class F>
  void post(F&& task) {
    threads.post([weak = weak_from_this(), task = std::forward<F>(task)] {
      if (const auto self = weak.lock()) task(*self);
    });
  }

  void write_all() {
    for (;;) {
      std::optional<kv_tiers::write_order> order;
      {
        const std::lock_guard lock(mutex);
        if (to_write.empty()) {
          --writers;
          return;
        }
        order = std::move(to_write.front());
        to_write.pop_front();
      }
      const auto written = file->write(order->place, order->identity, order->bytes);
      if (!written.ok() && !said_write.exchange(true))
        log::warn("a KV block was not kept on disk; it will be computed again: " +
                  written.detail());
      std::vector<kv_tiers::write_order> more;
      tiers->write_done(*order, written.ok(), clock::now(), more);
      if (more.empty()) continue;
      const std::lock_guard lock(mutex);
      for (auto& one : more)
        to_write.push_back(std::move(one));
    }
  }

  bool read(const kv_tiers::read_order& order) {
    const auto done = file->read(order.place, order.key, order.to);
    if (!done.ok() && !said_read.exchange(true))
      log::warn("a KV block did not come back from disk; it is computed again: " + done.detail());
    std::vector<kv_tiers::write_order> writes;
    tiers->read_done(order, done.ok(), clock::now(), writes);
    if (!writes.empty()) write(std::move(writes));
    return done.ok();
  }
};

offloader_core::offloader_core(tier_options options)
    : options_(std::move(options)), tiers_(std::make_shared<kv_tiers>(limits_of(options_))) {}

void offloader_core::open() {
  if (!options_.any()) return;
  const kv_tiers::limits limits = limits_of(options_);
  const std::int32_t staging =
      std::max(std::min(options_.device_blocks, blocks_in(most_staging_bytes, stride_of(options_))),
               least_staging_blocks);
  auto pool = host_pool::create(options_.block_bytes, limits.host_blocks + staging);
  if (!pool.ok()) {
    log::warn("KV tiers are off, since their host memory cannot be had: " + pool.detail());
    return;
  }
  std::int64_t kept_bytes = 0;
  std::unique_ptr<models::offload::disk_store> store;
  if (limits.keep && !options_.open_store) {
    auto kept = open_kept(options_, limits.disk_blocks * stride_of(options_));
    if (kept.ok()) {
      store = std::move(kept.value().store);
      kept_bytes = kept.value().bytes;
    } else {
      log::warn("KV blocks are not kept on disk: " + kept.detail());
    }
  } else if (limits.disk_blocks > 0) {
    auto opened = open_unkept(options_);
    if (opened.ok())
      store = std::move(opened).value();
    else
      log::warn("the disk tier of KV is off: " + opened.detail());
  }
  if (store) {
    auto file =
        std::make_unique<block_file>(std::move(store), options_.block_bytes, options_.fingerprint);
    const std::int32_t n = std::min(blocks_in(kept_bytes, stride_of(options_)), limits.disk_blocks);
    std::vector<kv_tiers::kept_block> found;
    for (auto& kept : file->scan(n, options_.block_tokens, limits.key))
      found.push_back({std::move(kept.identity), kept.place});
    const std::size_t n_kept = found.size();
    tiers_->adopt(std::move(found), n);
    const std::lock_guard lock(stop_mutex_);
    if (stopped_) return;
    disk_ = std::make_shared<disk>(tiers_, std::move(file));
    log::info("KV tiers: " + format_bytes(options_.host_bytes) + " of host memory and " +
              format_bytes(options_.disk_bytes) + " on disk (" + disk_->file->describe() + ")" +
              (limits.keep ? ", which keeps " + std::to_string(n_kept) + " blocks of before" : ""));
  } else {
    tiers_->lose_disk();
    if (limits.host_blocks == 0) return;
    log::info("KV tiers: " + format_bytes(options_.host_bytes) + " of host memory");
  }
  tiers_->open(std::move(pool).value());
}

void offloader_core::write(std::vector<kv_tiers::write_order> orders) {
  if (!orders.empty() && disk_) disk_->write(std::move(orders));
}

void offloader_core::spill(std::vector<std::pair<block_identity, host_block>> blocks) {
  std::vector<kv_tiers::write_order> writes;
  for (auto& [identity, bytes] : blocks)
    tiers_->put(std::move(identity), std::move(bytes), clock::now(), writes);
  write(std::move(writes));
}

void offloader_core::fetch(const std::vector<block_key>& keys, answer done) {
  struct job {
    std::mutex mutex;
    std::vector<host_block> have;
    std::size_t left = 0;
    std::uint64_t number = 0;

    /// True: that was the last one.
    bool finish(const kv_tiers::read_order& read, bool good) {
      const std::lock_guard lock(mutex);
      if (good) have[read.index] = read.to;
      return --left == 0;
    }
    /// What follows a block that is missing is of no use.
    std::vector<host_block> take() {
      have.erase(std::find(have.begin(), have.end(), nullptr), have.end());
      return std::move(have);
    }
  };
  const auto own = std::make_shared<job>();
  std::vector<kv_tiers::read_order> reads;
  tiers_->fetch(keys, clock::now(), own->have, reads);
  if (reads.empty()) return done(std::move(own->have));
  own->left = reads.size();
  own->number = disk_->expect(std::move(done));
  for (auto& read : reads)
    disk_->post([own, read = std::move(read)](disk& d) {
      if (own->finish(read, d.read(read))) d.give(own->number, own->take());
    });
}

void offloader_core::stop() {
  const std::lock_guard lock(stop_mutex_);
  stopped_ = true;
  if (disk_) disk_->stop();
}

} // namespace twill::actors
