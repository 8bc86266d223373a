// KV blocks in a file: which blocks are read back, and which are refused.
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "actors/offloader/block_file.hpp"
#include "actors/offloader/host_pool.hpp"
#include "actors/offloader/kept_folder.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/temp_folder.hpp"

namespace {

using namespace twill::actors;
namespace fs = std::filesystem;
namespace offload = twill::models::offload;

constexpr hash_key key{11, 12};
constexpr std::int64_t block_bytes = 5000;

block_identity identity_of(std::int32_t number) {
  block_identity one;
  one.parent = root_key(3);
  one.tokens = {number, 2, 3, 4};
  one.key = key_after(key, one.parent, one.tokens);
  return one;
}

struct opened {
  explicit opened(const std::string& path, const std::string& fingerprint = "model")
      : pool(host_pool::create(block_bytes, 4).value()),
        file(std::move(offload::open_kept_store(path).value().store), block_bytes, fingerprint) {}

  host_block filled(int with) const {
    auto block = pool->take();
    std::memset(block.get(), with, block_bytes);
    return block;
  }
  std::vector<block_file::kept_block> scan(const hash_key& k = key) {
    return file.scan(3, 4, k, false);
  }
  std::size_t n_found(const hash_key& k = key) { return scan(k).size(); }

  std::shared_ptr<host_pool> pool;
  block_file file;
};

void flip(const std::string& path, std::int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char was = static_cast<char>(file.get());
  file.seekp(at);
  file.put(static_cast<char>(was ^ 4));
}

} // namespace

TEST_CASE("a file of blocks gives back what it was given, also to the next process", "[actors]") {
  const twill::test::temp_folder f;
  const std::string path = f.path() + "/x.blocks";
  std::int64_t stride = 0;
  {
    opened o(path);
    stride = o.file.stride();
    for (std::int32_t i = 0; i < 3; ++i)
      REQUIRE(o.file.write(2 - i, identity_of(i), o.filled(i + 1)).ok());
    CHECK_FALSE(offload::open_kept_store(path).ok()); // the file is in use
  }
  struct stat found = {};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  {
    opened o(path);
    const auto kept = o.scan();
    REQUIRE(kept.size() == 3);
    for (std::int32_t i = 0; i < 3; ++i) { // scan() returns blocks in the order of the writes
      CHECK(kept[static_cast<std::size_t>(i)].place == 2 - i);
      CHECK(kept[static_cast<std::size_t>(i)].identity.tokens == identity_of(i).tokens);
      const auto to = o.pool->take();
      REQUIRE(o.file.read(2 - i, identity_of(i).key, to).ok());
      CHECK(std::all_of(to.get(), to.get() + block_bytes, [&](int c) { return c == i + 1; }));
      CHECK_FALSE(o.file.read(2 - i, identity_of(i + 1).key, to).ok());
    }
    CHECK(o.n_found({11, 13}) == 0);
  }
  CHECK(opened(path, "another model").n_found() == 0);
  SECTION("a header that was damaged is not found") {
    flip(path, stride + 40);
    CHECK(opened(path).n_found() == 2);
  }
  SECTION("bytes that were damaged are not read") {
    flip(path, stride + block_header_bytes + 4321);
    opened o(path);
    CHECK(o.n_found() == 3);
    CHECK_FALSE(o.file.read(1, identity_of(1).key, o.pool->take()).ok());
  }
  SECTION("a file that ends early has lost the rest") {
    fs::resize_file(path, static_cast<std::uintmax_t>(2 * stride + 100));
    opened o(path);
    CHECK(o.n_found() == 2);
  }
}

TEST_CASE("the folder of KV is its user's alone, keeps its key and is emptied", "[actors]") {
  const twill::test::temp_folder f;
  const std::string path = f.path() + "/kv";
  REQUIRE(make_kept_folder(path).ok());
  struct stat found = {};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0700);
  const auto first = kept_key(path);
  REQUIRE(first.ok());
  CHECK(kept_key(path).value().first == first.value().first);
  flip(path + "/key", 3);
  CHECK(kept_key(path).value().first != first.value().first);
  CHECK(kept_file(path, "m", "a") != kept_file(path, "m", "b"));
  CHECK(kept_file(path, "m", "a") != kept_file(path, "n", "a"));
  {
    std::ofstream(path + "/other.txt") << "not twill's";
    const auto held = offload::open_kept_store(kept_file(path, "m", "a")).value();
    CHECK_FALSE(purge_kept_folder(path).ok()); // a process has the file open
  }
  {
    // A daemon that uses the folder may not have opened its file yet.
    const auto daemon = keep_scope_key(path);
    REQUIRE(daemon.ok());
    const auto purged = purge_kept_folder(path);
    REQUIRE_FALSE(purged.ok());
    CHECK(purged.detail().find("running daemon") != std::string::npos);
    CHECK(keep_scope_key(path).ok()); // the engine of another model may use the folder too
    CHECK(fs::exists(path + "/key"));
  }
  REQUIRE(purge_kept_folder(path).ok());
  CHECK_FALSE(fs::exists(kept_file(path, "m", "a")));
  CHECK_FALSE(fs::exists(path + "/key"));
  CHECK(fs::exists(path + "/other.txt"));
  CHECK_FALSE(purge_kept_folder(f.path() + "/absent").ok());
  CHECK(kept_folder_path(path + "//").value() == path);
  fs::permissions(path, fs::perms(0755));
  CHECK_FALSE(make_kept_folder(path).ok());
  fs::create_symlink(f.path(), f.path() + "/link");
  CHECK_FALSE(make_kept_folder(f.path() + "/link").ok());
}

TEST_CASE("a model has one file of blocks, no larger than it may be", "[actors]") {
  const twill::test::temp_folder f;
  const std::string path = f.path() + "/kv";
  REQUIRE(make_kept_folder(path).ok());
  const auto touch = [&](const std::string& model, const std::string& fingerprint) {
    std::ofstream(kept_file(path, model, fingerprint)) << std::string(10000, 'x');
  };
  const auto exists = [&](const std::string& model, const std::string& fingerprint) {
    return fs::exists(kept_file(path, model, fingerprint));
  };
  for (const char* fingerprint : {"before", "in use", "now"})
    touch("m", fingerprint);
  touch("other", "before");
  {
    const auto held = offload::open_kept_store(kept_file(path, "m", "in use")).value();
    remove_old_files(path, "m", "now");
  }
  CHECK_FALSE(exists("m", "before"));
  CHECK(exists("m", "in use"));
  CHECK(exists("m", "now"));
  CHECK(exists("other", "before"));
  CHECK(offload::open_kept_store(kept_file(path, "m", "now"), 20000).value().bytes == 10000);
  CHECK(offload::open_kept_store(kept_file(path, "m", "now"), 6000).value().bytes == 6000);
  CHECK(fs::file_size(kept_file(path, "m", "now")) == 6000);
}
