#include "tests/gpu/cuda/emulator.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include <boost/context/fiber.hpp>

#include "gpu/detail/half.hpp"

namespace twill::test {

namespace {

namespace context = boost::context;

constexpr int warp_size = 32;
constexpr unsigned char poison = 0xff;

/// What a thread waits in.
enum class meeting : std::uint8_t { none, barrier, shuffle, matrices, matrices_transposed, mma };

struct pending_copy {
  unsigned offset;
  const unsigned char* from;
};

struct shared_access {
  unsigned offset, bytes;
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
  // What a collective takes and gives.
  float value = 0;
  int mask = 0;
  unsigned offset = 0;
  std::uint32_t a[4] = {}, b[2] = {}, matrices[4] = {};
  float d[4] = {};
};

/// Who touched a byte of shared memory since the last barrier.
struct byte_state {
  bool written = false; ///< ever
  int writer = -1;
  int reader = -1; ///< -2: several
};

float half_of(std::uint32_t word, int i) {
  return gpu::detail::f16_to_f32(static_cast<std::uint16_t>(word >> (16 * i)));
}

} // namespace

class emulated_block {
public:
  explicit emulated_block(const block_shape& shape)
      : shape_(shape), shared_(static_cast<std::size_t>(shape.shared_bytes), poison),
        state_(static_cast<std::size_t>(shape.shared_bytes)),
        threads_(static_cast<std::size_t>(shape.threads)) {
    if (shape.threads % warp_size != 0) throw fault("a block needs whole warps");
  }

  block_report run(const std::function<void(emulated_ptx)>& body) {
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
    while (advance()) {
    }
    for (int first = 0; first < shape_.threads; first += warp_size)
      count_accesses(first);
    return report_;
  }

  emulated_thread& thread(int t) { return threads_[static_cast<std::size_t>(t)]; }
  const block_shape& shape() const { return shape_; }

  /// Suspends the thread until its collective is done.
  void meet(int t, meeting at) {
    emulated_thread& me = thread(t);
    me.at = at;
    me.scheduler = std::move(me.scheduler).resume();
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
      if (s.writer >= 0 && s.writer != t)
        throw fault("thread " + std::to_string(t) + " reads shared byte " + std::to_string(i) +
                    " without a barrier after thread " + std::to_string(s.writer) + " wrote it");
      s.reader = s.reader == -1 || s.reader == t ? t : -2;
    }
    std::memcpy(to, shared_.data() + offset, bytes);
  }

  void write(int t, unsigned offset, const void* from, std::size_t bytes) {
    check_shared(offset, bytes);
    for (std::size_t i = offset; i < offset + bytes; ++i) {
      byte_state& s = state_[i];
      if ((s.writer >= 0 && s.writer != t) || s.reader == -2 || (s.reader >= 0 && s.reader != t))
        throw fault("thread " + std::to_string(t) + " writes shared byte " + std::to_string(i) +
                    " without a barrier after another thread touched it");
      s.written = true;
      s.writer = t;
    }
    std::memcpy(shared_.data() + offset, from, bytes);
  }

  /// A copy under way: its bytes are nobody's until it lands.
  void poison_target(int t, unsigned offset) {
    const unsigned char nothing[16] = {poison, poison, poison, poison, poison, poison,
                                       poison, poison, poison, poison, poison, poison,
                                       poison, poison, poison, poison};
    write(t, offset, nothing, sizeof nothing);
    for (std::size_t i = offset; i < offset + sizeof nothing; ++i)
      state_[i].written = false;
  }

private:
  /// Runs every thread to its next meeting, then holds the meetings that are complete. False once
  /// all threads have ended.
  bool advance() {
    bool any = false;
    for (int t = 0; t < shape_.threads; ++t) {
      emulated_thread& one = thread(t);
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
    if (at == meeting::shuffle)
      shuffle(first);
    else if (at == meeting::mma)
      multiply(first);
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
      s.writer = s.reader = -1;
    for (emulated_thread& t : threads_)
      t.at = meeting::none;
    return true;
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

  /// mma.m16n8k16.row.col.f32.f16.f16.f32.
  void multiply(int first) {
    float a[16][16], b[16][8];
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
    for (int lane = 0; lane < warp_size; ++lane)
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
        float& sum = thread(first + lane).d[i];
        for (int k = 0; k < 16; ++k)
          sum += a[row][k] * b[k][column];
      }
  }

  /// Counts the passes that a warp's accesses take: 4 bytes of each of 32 banks at a time, for all
  /// threads, or for a half or a quarter of them where each takes 8 or 16 bytes.
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
    std::vector<unsigned> words_of[32];
    for (int t = first; t < first + n; ++t) {
      if (i >= thread(t).accesses.size()) continue;
      const shared_access& access = thread(t).accesses[i];
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
  std::vector<unsigned char> shared_;
  std::vector<byte_state> state_;
  std::vector<emulated_thread> threads_;
  block_report report_;
};

int emulated_ptx::block() const {
  return block_->shape().index;
}

void emulated_ptx::check_global(const void* at, std::size_t bytes, std::size_t alignment,
                                bool writes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  if (address % alignment != 0)
    throw fault("a global address is not aligned to " + std::to_string(alignment) + " bytes");
  for (const global_range& range : block_->shape().global) {
    const auto begin = reinterpret_cast<std::uintptr_t>(range.begin);
    if (address >= begin && address + bytes <= begin + range.bytes && (range.writable || !writes))
      return;
  }
  throw fault(std::string("thread ") + std::to_string(thread_) + (writes ? " writes" : " reads") +
              " global memory outside what it was given");
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
  check_global(from, 16, 16, false);
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

void emulated_ptx::mma_f16(float (&d)[4], const std::uint32_t (&a)[4],
                           const std::uint32_t (&b)[2]) const {
  emulated_thread& me = block_->thread(thread_);
  std::copy_n(a, 4, me.a);
  std::copy_n(b, 2, me.b);
  std::copy_n(d, 4, me.d);
  block_->meet(thread_, meeting::mma);
  std::copy_n(me.d, 4, d);
}

block_report run_block(const block_shape& shape, const std::function<void(emulated_ptx)>& body) {
  return emulated_block(shape).run(body);
}

} // namespace twill::test
