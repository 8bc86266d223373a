#include "actors/offloader/offloader_core.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "actors/kv/cache_scope.hpp"
#include "actors/offloader/kept_folder.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"

namespace twill::actors {

namespace {

using clock = std::chrono::steady_clock;

/// How many I/O threads KV blocks may use: at most 4 tasks run at once, or 2 while streamed weights
/// have tasks. Weights are more urgent (rank 0 and not 1), because every step waits for them.
constexpr models::offload::io_share share{4, 2, 1};
constexpr std::int32_t most_writers = 2;
/// How long stop() waits for I/O that a slow disk delays.
constexpr std::chrono::seconds stop_patience{1};
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

/// The blocks up to the first one that could not be read: later blocks are of no use without it.
std::vector<host_block> without_gaps(std::vector<host_block> have) {
  have.erase(std::find(have.begin(), have.end(), nullptr), have.end());
  return have;
}

} // namespace

/// The state that tasks of the I/O threads share. If a disk hangs, it outlives the core.
struct offloader_core::disk : std::enable_shared_from_this<offloader_core::disk> {
  disk(std::shared_ptr<kv_tiers> t, std::unique_ptr<block_file> f,
       std::shared_ptr<models::offload::io_user> user)
      : tiers(std::move(t)), file(std::move(f)), io(std::move(user)) {}

  /// A fetch under way.
  struct job {
    std::vector<block_key> keys;
    /// blocks for the first keys; null where a read is still under way
    std::vector<host_block> have;
    std::size_t n_awaited = 0;
    bool ends = false; ///< a block was not found: no further block of this fetch is looked up
    time_point began, until;
    answer done;
  };

  std::shared_ptr<kv_tiers> tiers;
  std::unique_ptr<block_file> file;
  std::atomic<bool> stopping{false};
  std::atomic<bool> said_read{false}, said_write{false};
  std::mutex write_mutex;
  std::deque<kv_tiers::write_order> to_write;
  std::int32_t writers = 0;
  std::mutex job_mutex; ///< guards the members below; locked before the mutex of the tiers
  std::map<std::uint64_t, job> jobs;
  std::uint64_t last_job = 0;
  std::deque<block_key> to_prefetch;
  std::int32_t n_reads = 0;
  time_point last_end{};   ///< when a job last ended
  std::mutex answer_mutex; ///< held while `done` of a job is called
  bool stopped = false;
  std::shared_ptr<models::offload::io_user> io;

  /// After this call no fetch is answered any more, not even by an I/O thread that hangs now and
  /// goes on later, so the receivers of answers may be destroyed.
  void stop() {
    stopping = true;
    {
      const std::lock_guard lock(answer_mutex);
      stopped = true;
    }
    std::map<std::uint64_t, job> dropped;
    {
      const std::lock_guard lock(job_mutex);
      dropped.swap(jobs);
      to_prefetch.clear();
    }
    // closes the file, so that the next process may open it
    if (io->close(stop_patience)) file.reset();
  }

  void write(std::vector<kv_tiers::write_order> orders) {
    const std::lock_guard lock(write_mutex);
    for (auto& order : orders)
      to_write.push_back(std::move(order));
    while (writers < most_writers && writers < static_cast<std::int32_t>(to_write.size())) {
      ++writers;
      post([](disk& d) { d.write_next(); });
    }
  }

  /// Queues a task for the I/O threads. The task holds a weak reference to this object while it
  /// waits in the queue, and a strong one while it runs.
  template <class F>
  void post(F&& task) {
    io->post([weak = weak_from_this(), task = std::forward<F>(task)](std::size_t) {
      if (const auto self = weak.lock()) task(*self);
    });
  }

  /// Writes one block, then queues a task that writes the next one. Reads that were ordered
  /// meanwhile come before it in the queue.
  void write_next() {
    kv_tiers::write_order order;
    {
      const std::lock_guard lock(write_mutex);
      if (to_write.empty()) {
        --writers;
        return;
      }
      order = std::move(to_write.front());
      to_write.pop_front();
    }
    const auto written = file->write(order.place, order.identity, order.bytes);
    if (!written.ok() && !said_write.exchange(true))
      log::warn("a KV block was not kept on disk; it will be computed again: " + written.detail());
    std::vector<kv_tiers::write_order> more;
    tiers->write_done(order, written.ok(), clock::now(), more);
    if (!more.empty()) {
      const std::lock_guard lock(write_mutex);
      for (auto& one : more)
        to_write.push_back(std::move(one));
    }
    post([](disk& d) { d.write_next(); });
  }

  void fetch(std::vector<block_key> keys, time_point until, answer done) {
    const time_point now = clock::now();
    std::vector<job> over;
    {
      const std::lock_guard lock(job_mutex);
      if (stopping) return;
      job asked{std::move(keys), {}, 0, false, now, until, std::move(done)};
      if (jobs.size() < most_fetches)
        jobs.emplace(++last_job, std::move(asked));
      else
        over.push_back(std::move(asked));
      go_on(now, over);
    }
    give(over, now);
  }

  void prefetch(const std::vector<block_key>& keys, std::size_t most) {
    const time_point now = clock::now();
    std::vector<job> over;
    {
      const std::lock_guard lock(job_mutex);
      if (to_prefetch.size() + keys.size() > most) return;
      to_prefetch.insert(to_prefetch.end(), keys.begin(), keys.end());
      go_on(now, over);
    }
    give(over, now);
  }

  /// Starts the reads that may begin now, and moves the finished jobs to `over`.
  void go_on(time_point now, std::vector<job>& over) {
    for (auto at = jobs.begin(); at != jobs.end();) {
      job& j = at->second;
      const bool late = now >= j.until;
      while (!late && !j.ends && j.have.size() < j.keys.size() && n_reads < most_reads)
        ask(at->first, j, now);
      const bool asked_all = j.ends || j.have.size() == j.keys.size();
      if (late || (asked_all && j.n_awaited == 0)) {
        over.push_back(std::move(j));
        at = jobs.erase(at);
      } else {
        ++at;
      }
    }
    while (jobs.empty() && !to_prefetch.empty() && n_reads < most_prefetch) {
      order_read(tiers->fetch(to_prefetch.front(), {}, now));
      to_prefetch.pop_front();
    }
  }

  void ask(std::uint64_t number, job& j, time_point now) {
    auto handed = tiers->fetch(j.keys[j.have.size()], {number, j.have.size()}, now);
    if (handed.where == kv_tiers::whereabouts::nowhere) {
      j.ends = true;
      return;
    }
    if (!handed.bytes) ++j.n_awaited;
    j.have.push_back(handed.bytes);
    order_read(std::move(handed));
  }

  void order_read(kv_tiers::handed handed) {
    if (handed.where != kv_tiers::whereabouts::on_disk) return;
    ++n_reads;
    post([order = std::move(handed.read)](disk& d) { d.read(order); });
  }

  void read(const kv_tiers::read_order& order) {
    const auto done = file->read(order.place, order.key, order.to);
    if (!done.ok() && !said_read.exchange(true))
      log::warn("a KV block did not come back from disk; it is computed again: " + done.detail());
    const time_point now = clock::now();
    std::vector<kv_tiers::write_order> writes;
    const auto waited = tiers->read_done(order, done.ok(), now, writes);
    if (!writes.empty()) write(std::move(writes));
    std::vector<job> over;
    {
      const std::lock_guard lock(job_mutex);
      --n_reads;
      for (const kv_tiers::reader& who : waited)
        if (const auto at = jobs.find(who.fetch); at != jobs.end()) {
          job& j = at->second;
          --j.n_awaited;
          if (done.ok())
            j.have[who.index] = order.to;
          else
            j.ends = true;
        }
      go_on(now, over);
    }
    give(over, now);
  }

  void give(std::vector<job>& over, time_point now) {
    for (job& j : over) {
      auto blocks = without_gaps(std::move(j.have));
      tiers->freshen(std::span(j.keys).first(blocks.size()));
      const std::lock_guard lock(answer_mutex);
      if (stopped) return;
      // A job is a fetch. `now` may be earlier than last_end, because another thread may have
      // answered a job since then. It may be earlier than j.began, because a job may have joined a
      // read that was under way.
      const time_point from = std::max(j.began, last_end);
      last_end = std::max(now, from);
      j.done({std::move(blocks), std::chrono::duration<double>(last_end - from).count()});
    }
  }
};

offloader_core::offloader_core(tier_options options,
                               std::shared_ptr<models::offload::tier_resources> resources)
    : options_(std::move(options)), resources_(std::move(resources)),
      tiers_(std::make_shared<kv_tiers>(limits_of(options_))) {
  if (options_.any()) io_ = resources_->threads()->join(share);
}

void offloader_core::open() {
  if (!io_ || std::exchange(opens_, true)) return;
  // on an I/O thread, because a slow disk may delay it
  io_->post([weak = weak_from_this()](std::size_t) {
    if (const auto self = weak.lock()) self->open_now();
  });
}

void offloader_core::open_now() {
  const kv_tiers::limits limits = limits_of(options_);
  const std::int32_t staging =
      std::max(std::min(options_.device_blocks, blocks_in(most_staging_bytes, stride_of(options_))),
               least_staging_blocks);
  const std::int64_t staging_bytes = staging * stride_of(options_);
  if (!resources_->host().take(staging_bytes))
    return log::warn("KV tiers are off: blocks on their way need " + format_bytes(staging_bytes) +
                     " of host memory, and " + format_bytes(resources_->host().free()) +
                     " are free");
  auto pool = host_pool::create(options_.block_bytes, limits.host_blocks + staging);
  if (!pool.ok()) {
    resources_->host().give_back(staging_bytes);
    return log::warn("KV tiers are off, since their host memory cannot be had: " + pool.detail());
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
  if (!store) {
    tiers_->lose_disk();
    if (limits.host_blocks == 0) return resources_->host().give_back(staging_bytes);
    log::info("KV tiers: " + format_bytes(options_.host_bytes) + " of host memory");
    return tiers_->open(std::move(pool).value());
  }
  const std::lock_guard lock(stop_mutex_);
  if (stopped_) return;
  disk_ = std::make_shared<disk>(
      tiers_,
      std::make_unique<block_file>(std::move(store), options_.block_bytes, options_.fingerprint),
      io_);
  const std::int32_t n = std::min(blocks_in(kept_bytes, stride_of(options_)), limits.disk_blocks);
  disk_->post([n, limits, options = options_, pool = std::move(pool).value()](disk& d) {
    std::vector<kv_tiers::kept_block> found;
    for (auto& kept : d.file->scan(n, options.block_tokens, limits.key, d.stopping))
      found.push_back({std::move(kept.identity), kept.place});
    if (d.stopping) return;
    const std::size_t n_kept = found.size();
    d.tiers->adopt(std::move(found), n);
    d.tiers->open(pool);
    log::info("KV tiers: " + format_bytes(options.host_bytes) + " of host memory and " +
              format_bytes(options.disk_bytes) + " on disk (" + d.file->describe() + ")" +
              (limits.keep ? ", which keeps " + std::to_string(n_kept) + " blocks of before" : ""));
  });
}

/// The disk once it is open; null before, and if there is no disk tier.
std::shared_ptr<offloader_core::disk> offloader_core::opened() const {
  const std::lock_guard lock(stop_mutex_);
  return disk_;
}

void offloader_core::write(std::vector<kv_tiers::write_order> orders) {
  if (orders.empty()) return;
  if (const auto on = opened()) on->write(std::move(orders));
}

void offloader_core::spill(std::vector<std::pair<block_identity, host_block>> blocks) {
  std::vector<kv_tiers::write_order> writes;
  tiers_->put(std::move(blocks), clock::now(), writes);
  write(std::move(writes));
}

void offloader_core::fetch(std::vector<block_key> keys, time_point until, answer done) {
  if (const auto on = opened()) return on->fetch(std::move(keys), until, std::move(done));
  fetched all;
  for (const block_key& key : keys) {
    auto handed = tiers_->fetch(key, {}, clock::now());
    if (!handed.bytes) break;
    all.blocks.push_back(std::move(handed.bytes));
  }
  tiers_->freshen(std::span(keys).first(all.blocks.size()));
  done(std::move(all));
}

void offloader_core::prefetch(const std::vector<block_key>& keys) {
  // Prefetched blocks beyond half of the host tier would evict each other before they are used.
  const auto most = static_cast<std::size_t>(tiers_->host_blocks() / 2);
  if (const auto on = opened()) return on->prefetch(keys, most);
  tiers_->freshen(keys);
}

void offloader_core::stop() {
  // a hanging disk may finish its work only after another owner has the log
  tiers_->report_to(nullptr);
  std::shared_ptr<disk> on;
  {
    const std::lock_guard lock(stop_mutex_);
    stopped_ = true;
    on = disk_;
  }
  if (on)
    on->stop();
  else if (io_)
    io_->close(stop_patience);
}

} // namespace twill::actors
