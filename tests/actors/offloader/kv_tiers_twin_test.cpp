// kv_tiers, the index of the KV blocks in host memory and on disk, and host_pool, the host memory
// for these blocks, compared with a slow reference over random operations. Each answer, each write
// to disk that is ordered and every counter must be equal, and each block of host memory must have
// the same owners as in the reference.
#include <vector>

#include "actors/kv/block_key.hpp"
#include "tests/actors/kv/kv_sequences.hpp"
#include "tests/actors/offloader/tiers_pair.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

namespace {

using namespace twill::actors;
using namespace twill::test;

constexpr std::int32_t width = 2;

/// Names of blocks [first, first + n) of an operation's text.
std::vector<block_key> keys_of(const tiers_pair& both, const operation& o) {
  std::vector<block_key> keys;
  const std::size_t first = 1 + o.c % 3;
  for (std::size_t i = first; i < first + 1 + o.b % 4; ++i)
    keys.push_back(both.identity_of(text_of(o), i).key);
  return keys;
}

/// Blocks of a prefix are copied from the device to host memory, from the first one on.
void spill(tiers_pair& both, const operation& o) {
  const std::size_t first = 1 + o.c % 2;
  for (std::size_t i = first; i < first + 1 + o.b % 4; ++i) {
    host_block to = both.take_place();
    if (to == nullptr) return;
    block_identity one = both.identity_of(text_of(o), i);
    // Another block with the same name, which is very unlikely, must not be mistaken for this one.
    if (o.a % 37 == 0) one.tokens.back() += 1;
    if (o.a % 41 == 0) one.parent = root_key(99);
    both.copy(one, std::move(to));
  }
}

void apply(tiers_pair& both, const operation& o, std::uint64_t number) {
  const std::uint32_t what = o.kind % 64;
  if (what < 14) {
    spill(both, o);
    if (o.c % 4 != 0) both.put_copied();
  } else if (what < 18) {
    both.put_copied();
  } else if (what < 28) {
    const auto keys = keys_of(both, o);
    for (std::size_t i = 0; i < keys.size(); ++i)
      both.fetch(keys[i], {number, i});
    if (o.a % 2 == 0) both.freshen(keys);
  } else if (what < 36) {
    for (std::uint32_t i = 0; i <= o.c % 4; ++i) // several reads end one after the other
      both.end_read({0, o.a >> i, o.b >> 2 * i, 0});
  } else if (what < 48) {
    for (std::uint32_t i = 0; i <= o.c % 4; ++i)
      both.end_write({0, o.a >> i, o.b >> 2 * i, 0});
  } else if (what < 51) {
    both.touch(keys_of(both, o).front());
  } else if (what < 54) {
    const written_text text = text_of(o);
    both.match(root_key(text.scope), text.tokens(0, (o.a + o.b) % 12));
    const block_identity inner = both.identity_of(text, 1 + o.b % 3);
    both.match(inner.key, text.tokens((1 + o.b % 3) * width, 12));
  } else if (what < 59) {
    both.wait(o);
  } else if (what < 60) {
    both.change_disk(o);
  } else if (what < 61) {
    both.lose_device();
  } else if (what < 63) {
    both.let_readers_go();
  } else if (o.a % 16 == 0) {
    both.retire();
  }
}

} // namespace

TEST_CASE("the tiers answer as their twin does, which looks at every block", "[actors]") {
  CHECK(first_failure({8'000, 400'000, 120}, [](const operations& sequence) {
          if (sequence.empty()) return;
          tiers_pair both(sequence.front(), width);
          for (std::size_t i = 1; i < sequence.size(); ++i) {
            apply(both, sequence[i], i);
            both.demand_equal_tiers();
          }
          both.end();
        }) == "");
}
