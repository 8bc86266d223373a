// file_store, the uploaded and written files of all tenants: the bytes and files that a tenant may
// still store are compared with a plain list of files, also over restarts of the store. Once all
// files are gone, nothing is counted.
#include "net/batch/file_store.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "tests/catch.hpp"
#include "tests/net/stored/stored_support.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;

namespace {

constexpr std::int64_t most = 10'000;

bool is_of(const api_error& error, net::errc code) {
  const auto* own = std::get_if<net::errc>(&error.code);
  return own != nullptr && *own == code;
}

struct file {
  std::string id, tenant;
  std::int64_t bytes = 0;
  int holds = 0;
  std::unique_ptr<file_store::writer> writer; ///< null if the file is published
};

class both {
public:
  explicit both(std::filesystem::path folder) : folder_(std::move(folder)) { open(); }

  void apply(const operation& op) {
    const std::string tenant(1, static_cast<char>('a' + op.b % 2));
    std::vector<file*> growing, stored;
    for (file& one : files_)
      (one.writer ? growing : stored).push_back(&one);
    file* const written = growing.empty() ? nullptr : growing[op.a % growing.size()];
    file* const one = stored.empty() ? nullptr : stored[op.a % stored.size()];
    switch (op.kind % 16) {
    case 0:
    case 1:
    case 2:
      create(tenant);
      break;
    case 3:
    case 4:
    case 5:
      if (written != nullptr) append(*written, size_of(op.c));
      break;
    case 6:
      if (written != nullptr) cut(*written, op.c);
      break;
    case 7:
    case 8:
      if (written != nullptr) publish(*written);
      break;
    case 9:
      if (written != nullptr) drop(*written);
      break;
    case 10:
      put(tenant, size_of(op.c));
      break;
    case 11:
    case 12:
      if (one != nullptr) erase(*one, tenant);
      break;
    case 13:
      if (one == nullptr) break;
      demand(store_->hold(one->id), "a file is held");
      one->holds += 1;
      break;
    case 14:
      if (one == nullptr || one->holds == 0) break;
      store_->release(one->id);
      one->holds -= 1;
      break;
    default:
      if (op.a % 4 > 0)
        share_ = shares[op.c % std::size(shares)];
      else
        restart(op.c);
    }
    compare();
  }

  void end() {
    while (!files_.empty()) {
      file& last = files_.back();
      for (; last.holds > 0; --last.holds)
        store_->release(last.id);
      last.writer ? drop(last) : erase(last, last.tenant);
    }
    compare();
    demand_equal(store_->held_bytes(), 0, "the bytes of no files");
    for (const auto& left : std::filesystem::directory_iterator(folder_))
      demand(left.path().filename() == ".lock", "a file is left: " + left.path().string());
    share_ = 1.0;
    create("a");
    append(files_.back(), most);
    demand_equal(store_->held_bytes(), most, "the whole budget is free again");
    drop(files_.back());
  }

private:
  /// A tenant's share of the bytes and of the 10,000 files. The last two mean 3 files and 1 file.
  static constexpr double shares[] = {1.0, 0.5, 0.25, 0.0003, 0.00001};

  void open(std::set<std::string> under_way = {}) {
    store_ = std::make_unique<file_store>(
        folder_.string(), most, [this] { return share_; }, "",
        [under_way = std::move(under_way)] { return std::optional(under_way); });
  }

  static std::int64_t size_of(std::uint32_t n) {
    constexpr std::int64_t sizes[] = {0, 1, 2, 3, 500, 2499, 2500, 4999, 5000, 9999};
    return sizes[n % std::size(sizes)];
  }

  std::int64_t bytes_of(const std::string& tenant) const {
    std::int64_t sum = 0;
    for (const file& one : files_)
      if (tenant.empty() || one.tenant == tenant) sum += one.bytes;
    return sum;
  }

  /// The number of a tenant's files. Files that are still being written do not count.
  std::size_t stored_of(const std::string& tenant) const {
    return static_cast<std::size_t>(
        std::count_if(files_.begin(), files_.end(),
                      [&](const file& one) { return one.tenant == tenant && !one.writer; }));
  }
  bool has_place(const std::string& tenant) const {
    const auto of_tenant = static_cast<std::size_t>(10'000 * share_);
    return stored_of(tenant) < std::max<std::size_t>(of_tenant, 1);
  }
  bool has_room(const std::string& tenant, std::int64_t bytes) const {
    return bytes_of("") + bytes <= most &&
           static_cast<double>(bytes_of(tenant) + bytes) <= share_ * static_cast<double>(most);
  }

  void create(const std::string& tenant) {
    auto made = store_->create(tenant);
    demand_equal(made.ok(), has_place(tenant), "whether there is a place for a file");
    if (!made.ok()) return demand(is_of(made.code(), errc::batch_limit), "why there is none");
    files_.push_back({made.value()->id(), tenant, 0, 0, std::move(made).value()});
  }

  void append(file& to, std::int64_t bytes) {
    const auto written = to.writer->append(std::string(static_cast<std::size_t>(bytes), 'x'));
    demand_equal(written.ok(), has_room(to.tenant, bytes), "whether there is room for bytes");
    if (written.ok())
      to.bytes += bytes;
    else
      demand(is_of(written.code(), errc::storage_full), "why there is none");
  }

  void cut(file& one, std::uint32_t n) {
    const std::int64_t bytes = n % (one.bytes + 1);
    demand(one.writer->cut(bytes).ok(), "a file is cut off");
    one.bytes = bytes;
  }

  void publish(file& one) {
    stored_file description;
    description.filename = "name of " + one.id;
    description.purpose = "batch_output";
    demand(one.writer->publish(description).ok(), "a file is published");
    one.writer.reset();
  }

  void drop(file& one) {
    std::erase_if(files_, [id = one.id](const file& each) { return each.id == id; });
  }

  void put(const std::string& tenant, std::int64_t bytes) {
    stored_file description;
    description.tenant = tenant;
    description.filename = "whole";
    description.purpose = "batch";
    const auto stored = store_->put(description, std::string(static_cast<std::size_t>(bytes), 'x'));
    demand_equal(stored.ok(), has_place(tenant) && has_room(tenant, bytes),
                 "whether a file is stored");
    if (stored.ok()) files_.push_back({stored.value().id, tenant, bytes, 0, nullptr});
  }

  void erase(file& one, const std::string& tenant) {
    const auto erased = store_->erase(one.id, tenant);
    demand_equal(erased.ok(), one.holds == 0 && one.tenant == tenant, "whether a file is erased");
    if (erased.ok()) return drop(one);
    demand(is_of(erased.code(), one.tenant == tenant ? errc::conflict : errc::unknown_file),
           "why a file is not erased");
  }

  /// Opens the next store. Some of the files that are being written continue in the next store.
  void restart(std::uint32_t which) {
    std::set<std::string> kept;
    std::vector<std::string> gone;
    for (file& one : files_) {
      one.holds = 0;
      if (!one.writer) continue;
      which = which / 2 + 77;
      if (which % 2 == 0) {
        one.writer->keep();
        if (one.bytes > 0) kept.insert(one.id);
      }
      one.writer.reset();
      if (!kept.contains(one.id)) gone.push_back(one.id);
    }
    std::erase_if(files_, [&](const file& one) {
      return std::find(gone.begin(), gone.end(), one.id) != gone.end();
    });
    store_.reset();
    open(kept);
    for (file& one : files_) {
      if (!kept.contains(one.id)) continue;
      auto again = store_->reopen(one.id, one.tenant);
      demand(again.ok(), "a file that was kept is there");
      one.writer = std::move(again).value();
      demand_equal(one.writer->bytes(), one.bytes, "the bytes of a file that was kept");
    }
    for (const std::string& id : gone)
      demand(!store_->reopen(id, "a").ok(), "a file that was not kept is gone");
  }

  void compare_ledger() {
    ledger all;
    store_->account(all);
    all.exists("a batch", true);
    for (const file& one : files_) {
      if (one.writer) file_store::account_growing(all, "a batch", one.tenant, one.bytes);
      if (!one.writer) all.held(file_store::holds, "a batch", one.holds);
    }
    demand(all.faults().empty(), all.faults().empty() ? "" : all.faults().front());
    demand(all.is_at_rest(), "files are no requests");
  }

  void compare() {
    compare_ledger();
    demand_equal(store_->held_bytes(), bytes_of(""), "the bytes of all files");
    for (const std::string tenant : {"a", "b", "c"}) {
      std::set<std::string> is, expected;
      for (const auto& one : store_->list(tenant))
        is.insert(one.id);
      for (const file& one : files_) {
        if (one.tenant == tenant && !one.writer) expected.insert(one.id);
        const auto found = store_->find(one.id, tenant);
        demand_equal(found.has_value(), one.tenant == tenant && !one.writer, "whether it is found");
        if (found) demand_equal(found->bytes, one.bytes, "the bytes of a file");
      }
      demand(is == expected, "the files of a tenant");
    }
    for (const file& one : files_) {
      const auto path = folder_ / one.id;
      demand(std::filesystem::exists(path), "a file is on disk");
      demand_equal(static_cast<std::int64_t>(std::filesystem::file_size(path)), one.bytes,
                   "its bytes on disk");
    }
  }

  const std::filesystem::path folder_;
  double share_ = 1.0;
  std::unique_ptr<file_store> store_;
  std::vector<file> files_; ///< declared after the store, since writers must be destroyed first
};

} // namespace

TEST_CASE("Files are stored and counted as in a plain list of them") {
  CHECK(first_failure({.cases = 60, .long_cases = 3000}, [](const operations& sequence) {
          const testing::scratch_folder scratch;
          both stores(scratch.path());
          for (const operation& op : sequence)
            stores.apply(op);
          stores.end();
        }) == "");
}
