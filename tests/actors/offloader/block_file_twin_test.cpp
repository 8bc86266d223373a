// block_file, a file of KV blocks, compared with a reference that remembers which block was written
// where. What is read is what was written, by this object or by an earlier one that had the same
// file, and blocks that are damaged or only partly written are not found.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/offloader/block_file.hpp"
#include "actors/offloader/host_pool.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

namespace {

using namespace twill::actors;
using namespace twill::test;
namespace offload = twill::models::offload;
using twill::nothing;

constexpr std::int32_t n_places = 4;
constexpr std::int32_t width = 2;
constexpr std::int64_t block_bytes = 40;
constexpr std::int64_t stride = 2 * block_header_bytes;
constexpr std::int64_t header_bytes = 1112; ///< bytes of a header; the rest of its page is unused
constexpr hash_key key{11, 12};

/// The bytes of the disk, which are kept when a file is closed. A crash may cut a write short.
struct medium {
  std::vector<unsigned char> bytes = std::vector<unsigned char>(n_places * stride);
  std::int64_t most_written = stride;
};

class store_of_medium final : public offload::disk_store {
public:
  explicit store_of_medium(std::shared_ptr<medium> m) : medium_(std::move(m)) {}
  twill::models::result<nothing> write(std::int64_t offset, const void* from,
                                       std::int64_t bytes) override {
    const std::int64_t n = std::min(bytes, medium_->most_written);
    std::memcpy(medium_->bytes.data() + offset, from, static_cast<std::size_t>(n));
    if (n < bytes) return twill::models::failure{twill::models::errc::file_unwritable, "a crash"};
    return nothing{};
  }
  twill::models::result<nothing> read(std::int64_t offset, void* to, std::int64_t bytes) override {
    std::memcpy(to, medium_->bytes.data() + offset, static_cast<std::size_t>(bytes));
    return nothing{};
  }
  std::string describe() const override { return "medium"; }

private:
  std::shared_ptr<medium> medium_;
};

class file_and_twin {
public:
  file_and_twin() { open(0); }

  void apply(const operation& o) {
    const std::uint32_t what = o.kind % 16;
    if (what < 6)
      write(o);
    else if (what < 11)
      read(o);
    else if (what < 13)
      damage(o);
    else if (what < 14)
      scan(o.a % 2 == 0 ? n_places : static_cast<std::int32_t>(o.b % n_places));
    else
      open(o.a % 3 == 0 ? 1 : 0);
    for (std::int32_t place = 0; place < n_places; ++place)
      for (std::uint32_t text = 0; text < 2; ++text)
        check_read(place, identity_of({0, text, 0, 0}).key);
  }

private:
  struct written {
    block_identity identity;
    std::vector<unsigned char> content, header;
    std::uint32_t model = 0;
    int time = 0;
  };

  static block_identity identity_of(const operation& o) {
    block_identity one;
    one.parent = root_key(o.b % 2);
    one.tokens = {static_cast<std::int32_t>(o.a % 5), -1};
    // A block of another width, or with a name under another key, is useless to the next file.
    if (o.b % 16 == 7) one.tokens.push_back(3);
    const hash_key& own = o.b % 16 == 5 ? hash_key{11, 13} : key;
    one.key = key_after(own, one.parent, one.tokens);
    return one;
  }
  unsigned char* at(std::int32_t place) { return medium_->bytes.data() + place * stride; }

  /// The next process opens the file, for the same model or another one, and scans it.
  void open(std::uint32_t model) {
    model_ = model;
    file_ = std::make_unique<block_file>(std::make_unique<store_of_medium>(medium_), block_bytes,
                                         model == 0 ? "model" : "another model");
    demand_equal(file_->stride(), stride, "stride()");
    scan(n_places);
  }

  void write(const operation& o) {
    const auto place = static_cast<std::int32_t>(o.c % n_places);
    written now;
    now.identity = identity_of(o);
    now.model = model_;
    now.time = ++time_;
    for (std::int64_t i = 0; i < block_bytes; ++i)
      now.content.push_back(static_cast<unsigned char>(o.c / n_places % 3 + 7 * i));
    const host_block bytes = pool_->take();
    std::copy(now.content.begin(), now.content.end(), bytes.get());
    medium_->most_written = o.kind / 16 % 8 != 0 ? stride : o.kind / 128 % 2 * block_header_bytes;
    const bool is_whole = medium_->most_written == stride;
    demand_equal(file_->write(place, now.identity, bytes).ok(), is_whole, "write()");
    demand(std::equal(now.content.begin(), now.content.end(), bytes.get()),
           "a write changes the bytes of a block");
    if (medium_->most_written == 0) return; // the write changed nothing
    now.header.assign(at(place), at(place) + header_bytes);
    places_[place] = now;
  }

  bool is_header_whole(std::int32_t place) {
    const auto found = places_.find(place);
    return found != places_.end() && found->second.model == model_ &&
           std::equal(found->second.header.begin(), found->second.header.end(), at(place));
  }

  void read(const operation& o) {
    check_read(static_cast<std::int32_t>(o.c % n_places), identity_of(o).key);
  }
  void check_read(std::int32_t place, const block_key& name) {
    const bool is_there = is_header_whole(place) && places_[place].identity.key == name &&
                          std::equal(places_[place].content.begin(), places_[place].content.end(),
                                     at(place) + block_header_bytes);
    const host_block to = pool_->take();
    std::memset(to.get(), 0xee, block_bytes);
    demand_equal(file_->read(place, name, to).ok(), is_there, "read()");
    demand(!is_there ||
               std::equal(places_[place].content.begin(), places_[place].content.end(), to.get()),
           "other bytes are read");
  }

  /// Changes one byte of a place. A header that is damaged is not repaired.
  void damage(const operation& o) {
    const auto place = static_cast<std::int32_t>(o.c % n_places);
    const std::int64_t where = o.a % 3 == 0   ? o.b % header_bytes
                               : o.a % 3 == 1 ? block_header_bytes + o.b % block_bytes
                                              : o.b % stride;
    const auto found = places_.find(place);
    if (found == places_.end()) return;
    if (where < header_bytes &&
        !std::equal(found->second.header.begin(), found->second.header.end(), at(place)))
      return;
    at(place)[where] ^= 1U << o.c / n_places % 8;
  }

  /// Scanned blocks are in the order in which they were written.
  void scan(std::int32_t n) {
    std::map<int, std::int32_t> expected; // places by time
    for (const auto& [place, one] : places_)
      if (place < n && is_header_whole(place) && one.identity.tokens.size() == width &&
          one.identity.key == key_after(key, one.identity.parent, one.identity.tokens))
        expected[one.time] = place;
    const auto found = file_->scan(n, width, key, false);
    demand_equal(found.size(), expected.size(), "the number of blocks that are found");
    std::size_t i = 0;
    for (const auto& [time, place] : expected) {
      const block_identity& one = places_[place].identity;
      demand_equal(found[i].place, place, "the place of a block that is found");
      demand(found[i].identity.key == one.key && found[i].identity.parent == one.parent &&
                 found[i].identity.tokens == one.tokens,
             "another block is found");
      ++i;
    }
  }

  std::shared_ptr<medium> medium_ = std::make_shared<medium>();
  std::shared_ptr<host_pool> pool_ = host_pool::create(block_bytes, 1).value();
  std::unique_ptr<block_file> file_;
  std::uint32_t model_ = 0;
  std::map<std::int32_t, written> places_; ///< the last write of each place
  int time_ = 0;
};

} // namespace

TEST_CASE("a file of blocks finds what was written last, and nothing that was damaged",
          "[actors]") {
  CHECK(first_failure({2'000, 100'000, 80}, [](const operations& sequence) {
          file_and_twin both;
          for (const operation& o : sequence)
            both.apply(o);
        }) == "");
}
