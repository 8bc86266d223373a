#include "actors/offloader/block_file.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "actors/offloader/host_pool.hpp"
#include "models/offload/streams/checksum.hpp"

namespace twill::actors {

namespace {

using models::offload::checksum;

constexpr std::uint64_t magic = 0x31766b6c6c697774ULL; // "twillkv1"
constexpr std::int32_t most_tokens = 256;

struct header {
  std::uint64_t magic = 0;
  std::uint64_t fingerprint = 0;
  block_key key, parent;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_sum = 0;
  std::uint64_t n_tokens = 0;
  std::array<std::int32_t, most_tokens> tokens{};
  std::uint64_t own_sum = 0; ///< checksum of all members before this one
};
static_assert(sizeof(header) <= block_header_bytes);

std::uint64_t sum_of(const header& h) {
  return checksum(&h, offsetof(header, own_sum));
}

bool is_whole(const header& h, std::uint64_t fingerprint, std::int64_t block_bytes) {
  return h.magic == magic && h.own_sum == sum_of(h) && h.fingerprint == fingerprint &&
         h.bytes == static_cast<std::uint64_t>(block_bytes) && h.n_tokens <= most_tokens;
}

header header_at(const unsigned char* from) {
  header h;
  std::memcpy(static_cast<void*>(&h), from, sizeof h);
  return h;
}

} // namespace

block_file::block_file(std::unique_ptr<models::offload::disk_store> store, std::int64_t block_bytes,
                       const std::string& fingerprint)
    : store_(std::move(store)), block_bytes_(block_bytes),
      stride_(block_header_bytes + models::offload::store_aligned(block_bytes)),
      fingerprint_(checksum(fingerprint.data(), static_cast<std::int64_t>(fingerprint.size()))) {}

models::result<nothing> block_file::write(std::int32_t place, const block_identity& identity,
                                          const host_block& bytes) {
  header h;
  h.magic = magic;
  h.fingerprint = fingerprint_;
  h.key = identity.key;
  h.parent = identity.parent;
  h.number = number_.fetch_add(1);
  h.bytes = static_cast<std::uint64_t>(block_bytes_);
  h.bytes_sum = checksum(bytes.get(), block_bytes_);
  h.n_tokens = identity.tokens.size();
  std::copy(identity.tokens.begin(), identity.tokens.end(), h.tokens.begin());
  h.own_sum = sum_of(h);
  unsigned char* whole = bytes.get() - block_header_bytes;
  std::memcpy(whole, &h, sizeof h);
  return store_->write(place * stride_, whole, stride_);
}

models::result<nothing> block_file::read(std::int32_t place, const block_key& key,
                                         const host_block& to) {
  unsigned char* whole = to.get() - block_header_bytes;
  if (auto read = store_->read(place * stride_, whole, stride_); !read.ok()) return read;
  const header h = header_at(whole);
  if (!is_whole(h, fingerprint_, block_bytes_) || h.key != key ||
      h.bytes_sum != checksum(to.get(), block_bytes_))
    return models::failure{models::errc::bad_format,
                           "KV block " + std::to_string(place) + " of " + describe() +
                               " is not what was written there (checksum)"};
  return nothing{};
}

std::vector<block_file::kept_block> block_file::scan(std::int32_t n_places,
                                                     std::int32_t block_tokens, const hash_key& key,
                                                     const std::atomic<bool>& stop) {
  std::vector<kept_block> found;
  struct alignas(block_header_bytes) page {
    unsigned char bytes[block_header_bytes];
  };
  const auto one = std::make_unique<page>();
  int failures = 0; // after 4 failed reads the scan gives up
  for (std::int32_t place = 0; place < n_places && failures < 4 && !stop; ++place) {
    if (!store_->read(place * stride_, one->bytes, block_header_bytes).ok()) {
      ++failures;
      continue;
    }
    const header h = header_at(one->bytes);
    if (!is_whole(h, fingerprint_, block_bytes_)) continue;
    kept_block kept{h.number, place, {h.key, h.parent, {}}};
    kept.identity.tokens.assign(h.tokens.begin(),
                                h.tokens.begin() + static_cast<std::ptrdiff_t>(h.n_tokens));
    if (h.n_tokens != static_cast<std::uint64_t>(block_tokens) ||
        key_after(key, h.parent, kept.identity.tokens) != h.key)
      continue;
    number_ = std::max(number_.load(), h.number + 1);
    found.push_back(std::move(kept));
  }
  std::sort(found.begin(), found.end(),
            [](const kept_block& a, const kept_block& b) { return a.number < b.number; });
  return found;
}

} // namespace twill::actors
