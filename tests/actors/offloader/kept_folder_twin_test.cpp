// kept_folder, the folder of KV blocks on disk, compared with a plain list of files, while
// simulated daemons open it, are upgraded and are killed in random order, and files are purged or
// damaged.
#include "actors/offloader/kept_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/kv/cache_scope.hpp"
#include "tests/catch.hpp"
#include "tests/support/few_lines.hpp"
#include "tests/support/operations.hpp"

namespace {

using namespace twill::actors;
using namespace twill::test;
namespace fs = std::filesystem;

struct temporary {
  fs::path path;
  temporary() {
    std::string name = (fs::temp_directory_path() / "twill-kept-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw broken("no temporary folder");
    path = name;
  }
  ~temporary() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

/// A file that some daemon has open.
struct open_file {
  explicit open_file(const std::string& path) : fd(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    demand(fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0, "a file is not locked by anybody");
  }
  ~open_file() { ::close(fd); }
  const int fd;
};

using key_numbers = std::pair<std::uint64_t, std::uint64_t>;
key_numbers numbers_of(const hash_key& key) {
  return {key.first, key.second};
}

unsigned mode_of(const std::string& path) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0) return 0;
  return found.st_mode & 07777;
}

class both {
public:
  both() : folder_((scratch_.path / "some" / "kv").string()) {}

  void apply(const operation& op) {
    const std::string path =
        kept_file(folder_, "model" + std::to_string(op.a % 3), "state" + std::to_string(op.b % 3));
    switch (op.kind % 12) {
    case 0:
    case 1:
      begin(op.c);
      break;
    case 2:
      if (!daemons_.empty()) daemons_.erase(daemons_.begin() + op.a % daemons_.size());
      break;
    case 3:
    case 4:
    case 5:
      write(path, op);
      break;
    case 6:
      if (blocks_.contains({op.a % 3, op.b % 3}) && !open_.contains(path)) {
        open_[path] = std::make_unique<open_file>(path);
      }
      break;
    case 7:
      open_.erase(path);
      break;
    case 8:
    case 9:
      remove_old(op.a % 3, op.b % 3);
      break;
    case 10:
      purge();
      break;
    default:
      damage_key(op);
    }
    compare();
  }

private:
  bool exists() const { return fs::exists(folder_); }

  /// A daemon starts, with any spelling of the folder's path.
  void begin(std::uint32_t how) {
    auto lock = keep_scope_key(folder_ + (how % 3 == 0 ? "/" : how % 3 == 1 ? "//" : ""));
    demand(lock.ok(), "a folder of its own can be used");
    daemons_.push_back(std::move(lock).value());
    demand_equal(mode_of(folder_), 0700u, "the folder's mode");
    demand_equal(mode_of(folder_ + "/key"), 0600u, "the key's mode");
    const key_numbers used = numbers_of(scope_key());
    if (key_) demand(used == *key_, "a key that lies there is used");
    if (!key_) demand(!earlier_keys_.contains(used), "a key is fresh");
    key_ = used;
    earlier_keys_.insert(used);
    const auto again = kept_key(folder_);
    demand(again.ok() && numbers_of(again.value()) == used, "the key stays");
  }

  void write(const std::string& path, const operation& op) {
    if (!exists()) return;
    const auto bytes = static_cast<std::int64_t>(1 + op.c % 50);
    if (op.kind % 12 == 5) { // a file of another program
      const char* const names[] = {"blocks", "key.blocks.txt", "keys", "notes"};
      const std::string name = names[op.a % 4];
      std::ofstream(folder_ + "/" + name) << std::string(static_cast<std::size_t>(bytes), 'x');
      foreign_.insert(name);
      return;
    }
    std::ofstream(path) << std::string(static_cast<std::size_t>(bytes), 'x');
    blocks_[{op.a % 3, op.b % 3}] = bytes;
  }

  void remove_old(std::uint32_t model, std::uint32_t state) {
    if (!exists()) return;
    remove_old_files(folder_, "model" + std::to_string(model), "state" + std::to_string(state));
    std::erase_if(blocks_, [&](const auto& one) {
      return one.first.first == model && one.first.second != state && !open_.contains(path_of(one));
    });
  }

  void purge() {
    const auto purged = purge_kept_folder(folder_);
    const bool used = !daemons_.empty() || !open_.empty();
    demand_equal(purged.ok(), exists() && !used, "whether it is purged");
    if (!purged.ok()) return;
    std::int64_t bytes = has_key_file_ ? key_bytes_ : 0;
    for (const auto& [name, size] : blocks_)
      bytes += size;
    demand_equal(purged.value(), bytes, "the bytes that were purged");
    blocks_.clear();
    key_.reset();
    has_key_file_ = false;
  }

  /// Flips one bit of the key's file, or cuts off its end.
  void damage_key(const operation& op) {
    const std::string path = folder_ + "/key";
    if (!key_ || !daemons_.empty()) return;
    if (op.a % 4 == 0) {
      fs::resize_file(path, op.b % 24);
    } else {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      const auto at = static_cast<std::streamoff>(op.b % 24);
      file.seekg(at);
      const auto byte = static_cast<char>(file.get() ^ 1 << op.c % 8);
      file.seekp(at);
      file.put(byte);
    }
    key_.reset();
  }

  template <class One>
  std::string path_of(const One& one) const {
    return kept_file(folder_, "model" + std::to_string(one.first.first),
                     "state" + std::to_string(one.first.second));
  }

  void compare() {
    if (!exists()) return;
    std::set<std::string> is, expected(foreign_);
    for (const auto& file : fs::directory_iterator(folder_))
      is.insert(file.path().filename().string());
    has_key_file_ = is.contains("key");
    if (has_key_file_) key_bytes_ = static_cast<std::int64_t>(fs::file_size(folder_ + "/key"));
    demand(has_key_file_ || !key_, "the key is there");
    is.erase("key");
    for (const auto& one : blocks_)
      expected.insert(fs::path(path_of(one)).filename().string());
    demand_equal(expected.size(), foreign_.size() + blocks_.size(),
                 "files have names of their own");
    demand(is == expected, "the files of the folder");
  }

  temporary scratch_;
  const std::string folder_;
  std::vector<kept_folder_lock> daemons_;
  std::map<std::string, std::unique_ptr<open_file>> open_; ///< files that daemons have open
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t>
      blocks_; ///< bytes, by model, state
  std::set<std::string> foreign_;
  std::optional<key_numbers> key_; ///< the key in the folder, if undamaged
  std::set<key_numbers> earlier_keys_;
  bool has_key_file_ = false;
  std::int64_t key_bytes_ = 0;
};

} // namespace

TEST_CASE("a folder of kept KV has the files that were kept and not given up", "[actors]") {
  const twill::test::few_lines few;
  CHECK(first_failure({.cases = 200, .long_cases = 10'000, .most_operations = 40},
                      [](const operations& sequence) {
                        both one;
                        for (const operation& op : sequence)
                          one.apply(op);
                      }) == "");
}

TEST_CASE("a folder of kept KV that others may enter, or that is none, is refused", "[actors]") {
  const temporary scratch;
  for (unsigned mode = 0; mode < 0100; ++mode) {
    const auto folder = (scratch.path / std::to_string(mode)).string();
    REQUIRE(::mkdir(folder.c_str(), 0700) == 0);
    REQUIRE(::chmod(folder.c_str(), 0700 | mode) == 0);
    CHECK(make_kept_folder(folder).ok() == (mode == 0));
    CHECK(mode_of(folder) == (0700 | mode));
  }
  const auto own = (scratch.path / "0").string(), link = (scratch.path / "link").string();
  fs::create_symlink(own, link);
  CHECK_FALSE(make_kept_folder(link).ok());
  CHECK_FALSE(keep_scope_key(link).ok());
  std::ofstream(scratch.path / "file") << "x";
  CHECK_FALSE(make_kept_folder((scratch.path / "file").string()).ok());
  CHECK_FALSE(purge_kept_folder((scratch.path / "none").string()).ok());
}
