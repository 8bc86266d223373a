#include "tests/gpu/cuda/emulator.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>

#include <boost/context/fiber.hpp>

#include "gpu/detail/half.hpp"

namespace twill::test {

namespace {

namespace context = boost::context;

constexpr int warp_size = 32;
constexpr unsigned char poison = 0xff;

/// The collective, or the end of a turn, in which a thread waits.
enum class meeting : std::uint8_t {
  none,
  turn, ///< the end of its block's turn
  barrier,
  warp,
  shuffle,
  matrices,
  matrices_transposed,
  mma_f16,
  mma_bf16,
  mma_s8
};

struct pending_copy {
  unsigned offset;
  const unsigned char* from;
};

struct shared_access {
  unsigned offset, bytes;
};

/// The accesses of the threads of one block are numbered in one sequence. A block_view says which
/// of them happened before some event: those accesses of thread t whose number is at most own(t).
struct block_view {
  std::int64_t all = 0;                            ///< the bound for every thread
  std::unordered_map<int, std::int64_t> by_thread; ///< higher bounds of single threads

  std::int64_t own(int t) const {
    const auto found = by_thread.find(t);
    return found == by_thread.end() ? all : std::max(all, found->second);
  }
  void join(const block_view& other) {
    all = std::max(all, other.all);
    for (const auto& [t, count] : other.by_thread)
      by_thread[t] = std::max(by_thread[t], count);
  }
};
using grid_view = std::map<int, block_view>; // by block

void join(grid_view& to, const grid_view& from) {
  for (const auto& [block, view] : from)
    to[block].join(view);
}

/// The order of a thread's accesses to global memory. The thread's atomics make visible to other
/// threads what happened before the thread's last fence. What the thread learns from the atomics of
/// other threads is ordered before only those of its accesses that follow its next fence.
struct thread_order {
  grid_view before;   ///< accesses that are ordered before the thread's next one
  grid_view fenced;   ///< accesses that were ordered before its last fence
  grid_view received; ///< accesses learnt from atomics since its last fence

  void join(const thread_order& other) {
    test::join(before, other.before);
    test::join(fenced, other.fenced);
    test::join(received, other.received);
  }
};

/// An access of a byte of global memory. `count` is its number among the accesses of its block.
struct global_access {
  int block, thread;
  std::int64_t count;
};
struct global_byte {
  std::optional<global_access> write;
  std::vector<global_access> reads; ///< since the write
  bool atomic = false;              ///< ever accessed by an atomic
  bool plain = false;               ///< ever accessed otherwise
};

struct emulated_thread {
  context::fiber fiber;
  context::fiber scheduler;
  meeting at = meeting::none;
  bool ended = false;
  std::exception_ptr error;
  std::vector<pending_copy> uncommitted;
  std::vector<std::vector<pending_copy>> groups; ///< committed copies under way, oldest first
  std::vector<shared_access> accesses;           ///< since the last meeting
  // The operands and results of the collective in which the thread waits.
  thread_order order;
  float value = 0;
  int mask = 0;
  unsigned offset = 0;
  std::uint32_t a[4] = {}, b[2] = {}, matrices[4] = {};
  float d[4] = {};
  std::int32_t integers[4] = {}; ///< what mma_s8() uses instead of d
};

/// The accesses to a byte of shared memory since the last barrier. `writer` and `reader` are
/// numbers of threads, or -1 for none. An epoch is the number of times that the thread's warp had
/// called sync_warp() before the access.
struct byte_state {
  bool written = false; ///< whether the byte was ever written
  int writer = -1;
  int writer_epoch = 0;
  int reader = -1;      ///< -2: several
  int reader_warp = -1; ///< -2: several
  int reader_epoch = 0; ///< the latest
};

std::uint16_t half_of(std::uint32_t word, int i) {
  return static_cast<std::uint16_t>(word >> (16 * i));
}

std::int8_t byte_of(std::uint32_t word, int i) {
  return static_cast<std::int8_t>(word >> (8 * i));
}

/// a * b + c rounded to odd: if the exact sum is not an f32, the result is that of the two
/// neighbouring f32 whose last bit is 1. Rounding the result to bf16 then equals rounding the exact
/// sum once. a, b and c are bf16.
float fma_to_odd(float a, float b, float c) {
  const double product = double{a} * b, addend = c; // exact
  const double sum = product + addend;
  const auto near = static_cast<float>(sum);
  if (!std::isfinite(near)) return near;
  const double part = sum - product; // Knuth's TwoSum gives the error of `sum`
  const double error = (product - (sum - part)) + (addend - part);
  const double rest = (sum - near) + error;
  if (rest == 0 || gpu::detail::f32_to_bits(near) % 2 == 1) return near;
  return std::nextafter(near, rest > 0 ? INFINITY : -INFINITY);
}

/// Adds a value to a fingerprint: every bit of the result depends on all bits of both.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93U;
  return hash ^ hash >> 32;
}

/// A float of either sign between 1/64 and 64.
float float_of(std::uint64_t hash) {
  const auto bits = static_cast<std::uint32_t>(hash);
  const std::uint32_t exponent = 121 + (static_cast<std::uint32_t>(hash >> 32) % 12);
  return gpu::detail::bits_to_f32((bits & 0x807fffffU) | exponent << 23);
}

} // namespace

/// State shared by the blocks of an emulated grid: which thread accessed which byte of global
/// memory, and which accesses are ordered by atomics.
class emulated_grid {
public:
  /// A plain access of one byte by thread `t` of block `b`.
  void access(std::uintptr_t address, int b, int t, thread_order& order, bool writes) {
    global_byte& byte = bytes_[address];
    if (byte.atomic) throw fault(name_of(b, t) + " accesses a counter of atomics otherwise");
    byte.plain = true;
    if (byte.write) check(*byte.write, order, b, t, writes ? "writes" : "reads", "wrote");
    if (writes)
      for (const global_access& read : byte.reads)
        check(read, order, b, t, "writes", "read");
    const global_access now{b, t, count(b, t, order)};
    if (writes) {
      byte.write = now;
      byte.reads.clear();
      return;
    }
    for (global_access& read : byte.reads)
      if (read.block == b && read.thread == t) {
        read.count = now.count;
        return;
      }
    byte.reads.push_back(now);
  }

  void atomic(std::uintptr_t address, int b, int t, thread_order& order) {
    for (std::uintptr_t at = address; at < address + sizeof(std::int32_t); ++at) {
      if (bytes_[at].plain)
        throw fault(name_of(b, t) + " has an atomic on what is accessed otherwise");
      bytes_[at].atomic = true;
    }
    grid_view& released = released_[address];
    join(order.received, released);
    join(released, order.fenced);
  }

  /// The number of accesses that block `b` has made.
  std::int64_t count_of(int b) { return counts_[b]; }

private:
  static std::string name_of(int b, int t) {
    return "thread " + std::to_string(t) + " of block " + std::to_string(b);
  }
  std::int64_t count(int b, int t, thread_order& order) {
    const std::int64_t now = ++counts_[b];
    order.before[b].by_thread[t] = now;
    return now;
  }
  void check(const global_access& was, const thread_order& order, int b, int t, const char* does,
             const char* did) const {
    const auto view = order.before.find(was.block);
    if (view != order.before.end() && was.count <= view->second.own(was.thread)) return;
    throw fault(name_of(b, t) + " " + does + " a byte of global memory that " +
                name_of(was.block, was.thread) + " " + did +
                (b == was.block ? ", without a barrier in between"
                                : ", without a fence and an atomic in between"));
  }

  std::unordered_map<std::uintptr_t, global_byte> bytes_;
  std::unordered_map<std::uintptr_t, grid_view> released_; ///< by counter
  std::map<int, std::int64_t> counts_;                     ///< by block
};

class emulated_block {
public:
  emulated_block(const block_shape& shape, emulated_grid& grid)
      : shape_(shape), grid_(&grid), shared_(static_cast<std::size_t>(shape.shared_bytes), poison),
        state_(static_cast<std::size_t>(shape.shared_bytes)),
        threads_(static_cast<std::size_t>(shape.threads)),
        epochs_(static_cast<std::size_t>(shape.threads / warp_size)) {
    if (shape.threads % warp_size != 0) throw fault("a block needs whole warps");
  }

  /// Creates a fiber for each thread; none of them runs yet. `body` must outlive the block.
  void start(const std::function<void(emulated_ptx)>& body) {
    for (int t = 0; t < shape_.threads; ++t)
      thread(t).fiber = context::fiber([this, t, &body](context::fiber&& scheduler) {
        emulated_thread& me = thread(t);
        me.scheduler = std::move(scheduler);
        try {
          body(emulated_ptx(*this, t));
          if (!me.uncommitted.empty() || !me.groups.empty())
            throw fault("thread " + std::to_string(t) + " ends before its copies have landed");
        } catch (const context::detail::forced_unwind&) {
          throw;
        } catch (...) {
          me.error = std::current_exception();
        }
        me.ended = true;
        return std::move(me.scheduler);
      });
  }

  /// Runs every thread that is not waiting until it waits for other threads. If all are waiting,
  /// performs the collectives for which all participants wait. Returns false once all threads have
  /// ended.
  bool advance() {
    bool any = false;
    for (int t = 0; t < shape_.threads; ++t) {
      emulated_thread& one = thread(t);
      if (one.at == meeting::turn) one.at = meeting::none;
      if (one.ended || one.at != meeting::none) continue;
      any = true;
      one.fiber = std::move(one.fiber).resume();
      if (one.error) std::rethrow_exception(one.error);
    }
    if (any) return true;
    for (int first = 0; first < shape_.threads; first += warp_size)
      any = hold_warp(first) || any;
    if (any) return true;
    return hold_barrier();
  }

  block_report report() {
    for (int first = 0; first < shape_.threads; first += warp_size)
      count_accesses(first);
    return report_;
  }

  emulated_grid& grid() { return *grid_; }

  emulated_thread& thread(int t) { return threads_[static_cast<std::size_t>(t)]; }
  const block_shape& shape() const { return shape_; }

  /// Suspends the thread until its collective is done.
  void meet(int t, meeting at) {
    emulated_thread& me = thread(t);
    me.at = at;
    me.scheduler = std::move(me.scheduler).resume();
  }

  /// A counter of atomics must lie in one writable range.
  void check_counter(std::uintptr_t address) const {
    if (address % sizeof(std::int32_t) != 0) throw fault("a counter is not aligned to 4 bytes");
    for (const global_range& range : shape_.global) {
      const auto begin = reinterpret_cast<std::uintptr_t>(range.begin);
      if (range.writable && address >= begin &&
          address + sizeof(std::int32_t) <= begin + range.bytes)
        return;
    }
    throw fault("a counter lies outside the global memory that may be written");
  }

  void check_shared(unsigned offset, std::size_t bytes) const {
    if (offset % bytes != 0)
      throw fault("shared offset " + std::to_string(offset) + " is not aligned to " +
                  std::to_string(bytes) + " bytes");
    if (offset + bytes > shared_.size())
      throw fault("shared offset " + std::to_string(offset) + " lies past the block's " +
                  std::to_string(shared_.size()) + " bytes");
  }

  void read(int t, unsigned offset, void* to, std::size_t bytes) {
    check_shared(offset, bytes);
    for (std::size_t i = offset; i < offset + bytes; ++i) {
      byte_state& s = state_[i];
      if (!s.written)
        throw fault("thread " + std::to_string(t) + " reads shared byte " + std::to_string(i) +
                    ", which was never written");
      if (s.writer >= 0 && s.writer != t && !in_order(s.writer / warp_size, s.writer_epoch, t))
        throw fault("thread " + std::to_string(t) + " reads shared byte " + std::to_string(i) +
                    " without a barrier after thread " + std::to_string(s.writer) + " wrote it");
      s.reader = s.reader == -1 || s.reader == t ? t : -2;
      s.reader_warp = s.reader_warp == -1 || s.reader_warp == t / warp_size ? t / warp_size : -2;
      s.reader_epoch = epoch(t);
    }
    std::memcpy(to, shared_.data() + offset, bytes);
  }

  void write(int t, unsigned offset, const void* from, std::size_t bytes) {
    check_shared(offset, bytes);
    for (std::size_t i = offset; i < offset + bytes; ++i) {
      byte_state& s = state_[i];
      const bool after_writer =
          s.writer == -1 || s.writer == t || in_order(s.writer / warp_size, s.writer_epoch, t);
      const bool after_readers =
          s.reader == -1 || s.reader == t || in_order(s.reader_warp, s.reader_epoch, t);
      if (!after_writer || !after_readers)
        throw fault("thread " + std::to_string(t) + " writes shared byte " + std::to_string(i) +
                    " without a barrier after another thread touched it");
      s.written = true;
      s.writer = t;
      s.writer_epoch = epoch(t);
      s.reader = s.reader_warp = -1;
    }
    std::memcpy(shared_.data() + offset, from, bytes);
  }

  /// Marks the target of a copy that has not landed: reading these bytes is a fault.
  void poison_target(int t, unsigned offset) {
    const unsigned char nothing[16] = {poison, poison, poison, poison, poison, poison,
                                       poison, poison, poison, poison, poison, poison,
                                       poison, poison, poison, poison};
    write(t, offset, nothing, sizeof nothing);
    for (std::size_t i = offset; i < offset + sizeof nothing; ++i)
      state_[i].written = false;
  }

private:
  int epoch(int t) const { return epochs_[static_cast<std::size_t>(t / warp_size)]; }
  /// Whether a sync_warp() lies between what a warp did in an epoch and what thread t does now.
  bool in_order(int warp, int then, int t) const {
    return warp == t / warp_size && then < epoch(t);
  }

  /// The meeting that the threads [first, first + n) are all in; none where they differ.
  meeting common(int first, int n) {
    const meeting at = thread(first).at;
    for (int t = first; t < first + n; ++t)
      if (thread(t).at != at || thread(t).ended) return meeting::none;
    return at;
  }

  bool hold_warp(int first) {
    const meeting at = common(first, warp_size);
    if (at == meeting::none || at == meeting::barrier) return false;
    count_accesses(first);
    if (at == meeting::warp)
      ++epochs_[static_cast<std::size_t>(first / warp_size)];
    else if (at == meeting::shuffle)
      shuffle(first);
    else if (at == meeting::mma_f16 || at == meeting::mma_bf16)
      multiply(first, at == meeting::mma_bf16);
    else if (at == meeting::mma_s8)
      multiply_integers(first);
    else
      load(first, at == meeting::matrices_transposed);
    for (int t = first; t < first + warp_size; ++t)
      thread(t).at = meeting::none;
    return true;
  }

  bool hold_barrier() {
    if (std::all_of(threads_.begin(), threads_.end(), [](const auto& t) { return t.ended; }))
      return false;
    if (common(0, shape_.threads) != meeting::barrier)
      throw fault("threads wait for each other in different collectives");
    for (int first = 0; first < shape_.threads; first += warp_size)
      count_accesses(first);
    for (byte_state& s : state_)
      s.writer = s.reader = s.reader_warp = -1;
    order_all();
    for (emulated_thread& t : threads_)
      t.at = meeting::none;
    return true;
  }

  /// At a barrier: accesses ordered before one thread become ordered before all threads.
  void order_all() {
    thread_order all;
    for (const emulated_thread& t : threads_)
      all.join(t.order);
    all.before[shape_.index] = {grid_->count_of(shape_.index), {}};
    for (emulated_thread& t : threads_)
      t.order = all;
  }

  void shuffle(int first) {
    float given[warp_size];
    for (int lane = 0; lane < warp_size; ++lane)
      given[lane] = thread(first + lane).value;
    for (int lane = 0; lane < warp_size; ++lane)
      thread(first + lane).value = given[(lane ^ thread(first + lane).mask) % warp_size];
  }

  /// ldmatrix.m8n8.x4.b16.
  void load(int first, bool transposed) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::uint16_t rows[8][8];
      std::vector<shared_access> together;
      for (int r = 0; r < 8; ++r)
        together.push_back({thread(first + matrix * 8 + r).offset, sizeof rows[r]});
      report_.bank_conflicts += extra_passes(together);
      for (int r = 0; r < 8; ++r)
        read(first + matrix * 8 + r, thread(first + matrix * 8 + r).offset, rows[r],
             sizeof rows[r]);
      for (int lane = 0; lane < warp_size; ++lane) {
        const int outer = lane / 4, inner = 2 * (lane % 4);
        const std::uint32_t low = transposed ? rows[inner][outer] : rows[outer][inner];
        const std::uint32_t high = transposed ? rows[inner + 1][outer] : rows[outer][inner + 1];
        thread(first + lane).matrices[matrix] = low | high << 16;
      }
    }
  }

  /// mma.m16n8k16.row.col.f32.f16.f16.f32, and the same of bf16.
  void multiply(int first, bool bf16) {
    std::uint16_t a[16][16], b[16][8];
    for (int lane = 0; lane < warp_size; ++lane) {
      const emulated_thread& from = thread(first + lane);
      const int group = lane / 4, pair = 2 * (lane % 4);
      for (int i = 0; i < 2; ++i) {
        a[group][pair + i] = half_of(from.a[0], i);
        a[group + 8][pair + i] = half_of(from.a[1], i);
        a[group][pair + 8 + i] = half_of(from.a[2], i);
        a[group + 8][pair + 8 + i] = half_of(from.a[3], i);
        b[pair + i][group] = half_of(from.b[0], i);
        b[pair + 8 + i][group] = half_of(from.b[1], i);
      }
    }
    const auto value = [bf16](std::uint16_t bits) {
      return bf16 ? gpu::detail::bf16_to_f32(bits) : gpu::detail::f16_to_f32(bits);
    };
    for (int lane = 0; lane < warp_size; ++lane)
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
        float& sum = thread(first + lane).d[i];
        std::uint64_t hash = gpu::detail::f32_to_bits(sum);
        bool zero = true;
        for (int k = 0; k < 16; ++k) {
          const float product = value(a[row][k]) * value(b[k][column]);
          zero = zero && product == 0;
          hash = mixed(hash, product == 0 ? 0 : std::uint64_t{a[row][k]} << 16 | b[k][column]);
          if (!shape_.order_records) sum += product;
        }
        if (shape_.order_records && !zero) sum = float_of(hash);
      }
  }

  /// mma.m16n8k32.row.col.s32.s8.s8.s32.
  void multiply_integers(int first) {
    std::int8_t a[16][32], b[32][8];
    for (int lane = 0; lane < warp_size; ++lane) {
      const emulated_thread& from = thread(first + lane);
      const int group = lane / 4, four = 4 * (lane % 4);
      for (int i = 0; i < 4; ++i)
        for (int half = 0; half < 2; ++half) {
          a[group][16 * half + four + i] = byte_of(from.a[2 * half], i);
          a[group + 8][16 * half + four + i] = byte_of(from.a[2 * half + 1], i);
          b[16 * half + four + i][group] = byte_of(from.b[half], i);
        }
    }
    for (int lane = 0; lane < warp_size; ++lane)
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
        auto sum = static_cast<std::uint32_t>(thread(first + lane).integers[i]);
        for (int k = 0; k < 32; ++k)
          sum += static_cast<std::uint32_t>(a[row][k] * b[k][column]);
        thread(first + lane).integers[i] = static_cast<std::int32_t>(sum);
      }
  }

  /// Counts the passes that a warp's accesses to shared memory take. A pass reads or writes 4 bytes
  /// of each of the 32 banks: for all threads or, if each thread accesses 8 or 16 bytes, for a half
  /// or a quarter of them.
  void count_accesses(int first) {
    std::size_t most = 0;
    for (int t = first; t < first + warp_size; ++t)
      most = std::max(most, thread(t).accesses.size());
    for (std::size_t i = 0; i < most; ++i) {
      unsigned widest = 4;
      for (int t = first; t < first + warp_size; ++t)
        if (i < thread(t).accesses.size()) widest = std::max(widest, thread(t).accesses[i].bytes);
      const int together = warp_size / static_cast<int>(widest / 4);
      for (int part = 0; part < warp_size; part += together)
        report_.bank_conflicts += extra_passes(first + part, together, i);
      ++report_.shared_accesses;
    }
    for (int t = first; t < first + warp_size; ++t)
      thread(t).accesses.clear();
  }

  int extra_passes(int first, int n, std::size_t i) {
    std::vector<shared_access> together;
    for (int t = first; t < first + n; ++t)
      if (i < thread(t).accesses.size()) together.push_back(thread(t).accesses[i]);
    return extra_passes(together);
  }
  static int extra_passes(const std::vector<shared_access>& together) {
    std::vector<unsigned> words_of[32];
    for (const shared_access& access : together) {
      for (unsigned at = access.offset / 4; at < (access.offset + access.bytes + 3) / 4; ++at) {
        auto& words = words_of[at % 32];
        if (std::find(words.begin(), words.end(), at) == words.end()) words.push_back(at);
      }
    }
    std::size_t passes = 1;
    for (const auto& words : words_of)
      passes = std::max(passes, words.size());
    return static_cast<int>(passes) - 1;
  }

  block_shape shape_;
  emulated_grid* grid_;
  std::vector<unsigned char> shared_;
  std::vector<byte_state> state_;
  std::vector<emulated_thread> threads_;
  std::vector<int> epochs_; ///< by warp
  block_report report_;
};

int emulated_ptx::block() const {
  return block_->shape().index;
}

void emulated_ptx::access_global(const void* at, std::size_t bytes, std::size_t alignment,
                                 bool writes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  if (address % alignment != 0)
    throw fault("a global address is not aligned to " + std::to_string(alignment) + " bytes");
  bool allowed = false, writable = false;
  for (const global_range& range : block_->shape().global) {
    const auto begin = reinterpret_cast<std::uintptr_t>(range.begin);
    const bool inside = address >= begin && address + bytes <= begin + range.bytes;
    allowed = allowed || (inside && (range.writable || !writes));
    writable = writable || (inside && range.writable);
  }
  if (!allowed)
    throw fault(std::string("thread ") + std::to_string(thread_) + (writes ? " writes" : " reads") +
                " global memory outside what it was given");
  if (!writable) return;
  for (std::uintptr_t byte = address; byte < address + bytes; ++byte)
    block_->grid().access(byte, block(), thread_, block_->thread(thread_).order, writes);
}

gpu::cuda::words4 emulated_ptx::load_constant(const gpu::cuda::words4* from) const {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  for (const global_range& range : block_->shape().global) {
    const auto begin = reinterpret_cast<std::uintptr_t>(range.begin);
    if (range.writable && address + sizeof *from > begin && address < begin + range.bytes)
      throw fault("load_constant() reads memory that the grid may write");
  }
  return load(from);
}

void emulated_ptx::fence() const {
  block_->meet(thread_, meeting::turn);
  thread_order& order = block_->thread(thread_).order;
  join(order.before, order.received);
  order.fenced = order.before;
}

std::int32_t emulated_ptx::atomic_add(std::int32_t* counter, std::int32_t value) const {
  block_->meet(thread_, meeting::turn);
  const auto address = reinterpret_cast<std::uintptr_t>(counter);
  block_->check_counter(address);
  block_->grid().atomic(address, block(), thread_, block_->thread(thread_).order);
  return std::exchange(*counter, *counter + value);
}

std::uint32_t emulated_ptx::lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                 std::uint32_t table) const {
  std::uint32_t to = 0;
  for (unsigned i = 0; i < 32; ++i)
    to |= (table >> ((a >> i & 1U) << 2 | (b >> i & 1U) << 1 | (c >> i & 1U)) & 1U) << i;
  return to;
}

std::uint32_t emulated_ptx::sub_f16x2(std::uint32_t a, std::uint32_t b) const {
  // Rounding to f32 first changes nothing, since f32 has more than twice the bits of f16 plus two.
  std::uint32_t to = 0;
  for (int i = 0; i < 2; ++i) {
    const float difference =
        gpu::detail::f16_to_f32(half_of(a, i)) - gpu::detail::f16_to_f32(half_of(b, i));
    to |= static_cast<std::uint32_t>(gpu::detail::f32_to_f16(difference)) << (16 * i);
  }
  return to;
}

float emulated_ptx::add(float a, float b) const {
  return a + b;
}

std::uint32_t emulated_ptx::narrow_f16x2(float low, float high) const {
  return gpu::detail::f32_to_f16(low) | std::uint32_t{gpu::detail::f32_to_f16(high)} << 16;
}

std::uint32_t emulated_ptx::narrow_bf16x2(float low, float high) const {
  return gpu::detail::f32_to_bf16(low) | std::uint32_t{gpu::detail::f32_to_bf16(high)} << 16;
}

std::uint32_t emulated_ptx::fma_bf16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
  std::uint32_t to = 0;
  for (int i = 0; i < 2; ++i)
    to |= static_cast<std::uint32_t>(gpu::detail::f32_to_bf16(fma_to_odd(
              gpu::detail::bf16_to_f32(half_of(a, i)), gpu::detail::bf16_to_f32(half_of(b, i)),
              gpu::detail::bf16_to_f32(half_of(c, i)))))
          << (16 * i);
  return to;
}

std::uint32_t emulated_ptx::permute(std::uint32_t a, std::uint32_t b,
                                    std::uint32_t selector) const {
  const std::uint64_t both = std::uint64_t{b} << 32 | a;
  std::uint32_t to = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t chosen = selector >> (4 * i) & 15U;
    if (chosen > 7) throw fault("bit 3 of a nibble of permute()'s selector must be 0");
    to |= (static_cast<std::uint32_t>(both >> (8 * chosen)) & 255U) << (8 * i);
  }
  return to;
}

void emulated_ptx::read_shared(unsigned offset, void* to, std::size_t bytes) const {
  block_->read(thread_, offset, to, bytes);
  block_->thread(thread_).accesses.push_back({offset, static_cast<unsigned>(bytes)});
}

void emulated_ptx::write_shared(unsigned offset, const void* from, std::size_t bytes) const {
  block_->write(thread_, offset, from, bytes);
  block_->thread(thread_).accesses.push_back({offset, static_cast<unsigned>(bytes)});
}

void emulated_ptx::copy_async(unsigned offset, const void* from) const {
  access_global(from, 16, 16, false);
  block_->check_shared(offset, 16);
  block_->poison_target(thread_, offset);
  block_->thread(thread_).uncommitted.push_back({offset, static_cast<const unsigned char*>(from)});
}

void emulated_ptx::commit() const {
  emulated_thread& me = block_->thread(thread_);
  me.groups.push_back(std::exchange(me.uncommitted, {}));
}

void emulated_ptx::wait_for(int left) const {
  auto& groups = block_->thread(thread_).groups;
  while (static_cast<int>(groups.size()) > left) {
    for (const pending_copy& copy : groups.front())
      block_->write(thread_, copy.offset, copy.from, 16);
    groups.erase(groups.begin());
  }
}

void emulated_ptx::barrier() const {
  block_->meet(thread_, meeting::barrier);
}

void emulated_ptx::sync_warp() const {
  block_->meet(thread_, meeting::warp);
}

float emulated_ptx::shuffle_xor(float value, int mask) const {
  emulated_thread& me = block_->thread(thread_);
  me.value = value;
  me.mask = mask;
  block_->meet(thread_, meeting::shuffle);
  return me.value;
}

void emulated_ptx::load_matrices(std::uint32_t (&to)[4], unsigned offset, bool transposed) const {
  emulated_thread& me = block_->thread(thread_);
  me.offset = offset;
  block_->meet(thread_, transposed ? meeting::matrices_transposed : meeting::matrices);
  std::copy_n(me.matrices, 4, to);
}

void emulated_ptx::mma(float (&d)[4], const fragments_a& a, const fragments_b& b, bool bf16) const {
  emulated_thread& me = block_->thread(thread_);
  std::copy_n(a, 4, me.a);
  std::copy_n(b, 2, me.b);
  std::copy_n(d, 4, me.d);
  block_->meet(thread_, bf16 ? meeting::mma_bf16 : meeting::mma_f16);
  std::copy_n(me.d, 4, d);
}

void emulated_ptx::mma_f16(float (&d)[4], const std::uint32_t (&a)[4],
                           const std::uint32_t (&b)[2]) const {
  mma(d, a, b, false);
}

void emulated_ptx::mma_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                            const std::uint32_t (&b)[2]) const {
  mma(d, a, b, true);
}

void emulated_ptx::mma_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                          const std::uint32_t (&b)[2], const std::int32_t (&c)[4]) const {
  emulated_thread& me = block_->thread(thread_);
  std::copy_n(a, 4, me.a);
  std::copy_n(b, 2, me.b);
  std::copy_n(c, 4, me.integers);
  block_->meet(thread_, meeting::mma_s8);
  std::copy_n(me.integers, 4, d);
}

void emulated_ptx::copy_async_or_zeros(unsigned offset, const void* from, bool zeros) const {
  static constexpr unsigned char none[16] = {};
  if (!zeros) return copy_async(offset, from);
  block_->check_shared(offset, sizeof none);
  block_->poison_target(thread_, offset);
  block_->thread(thread_).uncommitted.push_back({offset, none});
}

block_report run_block(const block_shape& shape, const std::function<void(emulated_ptx)>& body) {
  emulated_grid grid;
  emulated_block block(shape, grid);
  block.start(body);
  while (block.advance()) {
  }
  return block.report();
}

block_report run_grid(const grid_shape& shape, const std::function<void(emulated_ptx)>& body) {
  emulated_grid grid;
  std::vector<std::unique_ptr<emulated_block>> blocks;
  for (int b = 0; b < shape.blocks; ++b) {
    block_shape one = shape.block;
    one.index = b;
    blocks.push_back(std::make_unique<emulated_block>(one, grid));
    blocks.back()->start(body);
  }
  block_report report;
  std::mt19937 random(shape.seed);
  while (!blocks.empty()) {
    const auto chosen = blocks.begin() + static_cast<std::ptrdiff_t>(random() % blocks.size());
    if ((*chosen)->advance()) continue;
    const block_report of_block = (*chosen)->report();
    report.bank_conflicts += of_block.bank_conflicts;
    report.shared_accesses += of_block.shared_accesses;
    blocks.erase(chosen);
  }
  return report;
}

} // namespace twill::test
