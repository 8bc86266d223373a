// mailbox_depths: counts the messages that wait in the mailboxes of each kind of actor. All
// sessions are counted together.
//
// Lock-free; any thread. A message counts from when it was sent until its handler has run, so that
// a message under way counts as well.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace twill::actors {

enum class actor_kind : std::uint8_t {
  session,
  batcher,
  kv_allocator,
  offloader,
  executor,
  grammar_compiler,
  supervisor,
};
inline constexpr std::array<const char*, 7> actor_kind_names{
    "session",  "batcher",          "kv_allocator", "offloader",
    "executor", "grammar_compiler", "supervisor"};

class mailbox_depths {
public:
  void add(actor_kind of, std::int64_t n) { at(of).fetch_add(n, std::memory_order_relaxed); }
  std::int64_t depth(std::size_t kind) const {
    return depths_[kind].load(std::memory_order_relaxed);
  }

private:
  std::atomic<std::int64_t>& at(actor_kind of) { return depths_[static_cast<std::size_t>(of)]; }
  std::array<std::atomic<std::int64_t>, actor_kind_names.size()> depths_{};
};

} // namespace twill::actors
