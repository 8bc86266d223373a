// The files of stored responses, in folders of the real file system.
#include "net/stored/stored_folder.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/net/stored/stored_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;
namespace fs = std::filesystem;

TEST_CASE("stored responses are there again when the folder is opened anew") {
  const scratch_folder place;
  {
    auto folder = open_folder(place.path());
    begin(*folder, "resp_a", "head a");
    begin(*folder, "resp_b", "head b");
    REQUIRE_FALSE(
        add(*folder, {{"resp_a", "a1"}, {"resp_b", "b1"}, {"resp_a", std::string(3, '\0')}}));
    REQUIRE_FALSE(folder->finish({"resp_c", "head c", {"c1", "", "c3"}}));
    REQUIRE_FALSE(folder->finish({"resp_b", "head b", {"b1", "b2"}}));
    CHECK(folder->bytes() == bytes_in(place.path()));
  }
  stored_folder::contents found;
  const auto folder = open_folder(place.path(), &found);
  CHECK(found.warnings.empty());
  REQUIRE(found.running.size() == 1);
  CHECK(found.running[0] == stored_bytes{"resp_a", "head a", {"a1", std::string(3, '\0')}});
  REQUIRE(found.over.size() == 2);
  CHECK(found.over[0].id == "resp_b");
  CHECK(found.over[1].id == "resp_c");
  CHECK(found.over[1].head == "head c");
  CHECK(found.over[1].bytes ==
        static_cast<std::int64_t>(fs::file_size(place.path() / "resp_c.response")));
  CHECK(folder->read("resp_c").value() == stored_bytes{"resp_c", "head c", {"c1", "", "c3"}});
  CHECK(folder->read("resp_b").value() == stored_bytes{"resp_b", "head b", {"b1", "b2"}});
  CHECK(folder->bytes() == bytes_in(place.path()));
  CHECK_FALSE(add(*folder, {{"resp_a", "a3"}}));
}

TEST_CASE("running responses come back in the order in which they began") {
  const scratch_folder place;
  std::vector<std::string> ids;
  for (int i = 0; i < 40; ++i)
    ids.push_back("r" + std::to_string(i * 7919 % 40));
  {
    auto folder = open_folder(place.path());
    for (const auto& id : ids)
      begin(*folder, id, "h");
    folder->forget("r3");
    const auto all = [&](const std::string& id) {
      static stored_bytes whole;
      whole = {id, "h", {}};
      return &whole;
    };
    REQUIRE_FALSE(folder->tidy({}, all));
    begin(*folder, "late", "h");
  }
  std::erase(ids, "r3");
  ids.emplace_back("late");
  stored_folder::contents found;
  const auto folder = open_folder(place.path(), &found);
  REQUIRE(found.running.size() == ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    CHECK(found.running[i].id == ids[i]);
}

TEST_CASE("the folder and its files are for their owner alone") {
  const scratch_folder place;
  const auto mode = [](const fs::path& path) {
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return status.st_mode & 07777;
  };
  const auto before = ::umask(0);
  stored_folder::contents found;
  auto folder = open_folder(place.path() / "deep" / "er", &found);
  CHECK(found.warnings.empty());
  begin(*folder, "a", "h");
  REQUIRE_FALSE(folder->finish({"b", "h", {}}));
  ::umask(before);
  CHECK(mode(place.path() / "deep" / "er") == 0700);
  int files = 0;
  for (const auto& file : fs::directory_iterator(place.path() / "deep" / "er")) {
    CHECK(mode(file.path()) == 0600);
    ++files;
  }
  CHECK(files == 3);

  folder.reset();
  REQUIRE(::chmod((place.path() / "deep" / "er").c_str(), 0755) == 0);
  folder = open_folder(place.path() / "deep" / "er", &found);
  CHECK(mode(place.path() / "deep" / "er") == 0700);
  REQUIRE(found.warnings.size() == 1);
  CHECK(found.warnings[0].find("`responses.folder`") != std::string::npos);
}

TEST_CASE("a folder that cannot be used is refused with a text that says what to do") {
  const scratch_folder place;
  const auto refusal = [](const fs::path& path) {
    stored_folder::contents found;
    auto opened = stored_folder::open(path, stored_folder::sync::never, found);
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.code().find("`responses.folder`") == 0);
    CHECK(opened.code().find(path.string()) != std::string::npos);
    return opened.code();
  };
  std::ofstream(place.path() / "file") << "x";
  CHECK(refusal(place.path() / "file").find("Not a directory") != std::string::npos);
  CHECK(refusal(place.path() / "file" / "deeper").find("Not a directory") != std::string::npos);
  CHECK(refusal("").find("empty") != std::string::npos);

  const auto folder = open_folder(place.path() / "used");
  CHECK(refusal(place.path() / "used").find("in use by another process") != std::string::npos);
}

TEST_CASE("ids that could be paths are refused everywhere") {
  const scratch_folder place;
  const auto folder = open_folder(place.path() / "f");
  for (const auto& id :
       std::vector<std::string>{"", "a/b", "../a", "/", "a b", "\xC3\xA9", "a\n"}) {
    CAPTURE(id);
    CHECK_FALSE(is_stored_id(id));
    CHECK(try_begin(*folder, id, "h") == std::errc::invalid_argument);
    CHECK(folder->finish({id, "h", {}}) == std::errc::invalid_argument);
    CHECK(folder->erase(id) == std::errc::invalid_argument);
    CHECK(folder->read(id).code() == std::errc::invalid_argument);
    folder->forget(id);
  }
  CHECK_FALSE(is_stored_id(std::string(97, 'a')));
  CHECK_FALSE(is_stored_id(std::string("a\0b", 3)));
  // Names that mean something to a file system or to this folder are ordinary ids.
  for (const auto& id : std::vector<std::string>{".", "..", "journal", ".lock", "a.response",
                                                 "a.response.new", std::string(96, 'z')}) {
    CAPTURE(id);
    begin(*folder, id, "h");
    CHECK_FALSE(folder->finish({id, "h", {id}}));
    CHECK(folder->read(id).value().records == std::vector<std::string>{id});
  }
  CHECK(std::distance(fs::directory_iterator(place.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("what a step may not hold is refused, and nothing of the step counts") {
  const scratch_folder place;
  {
    const auto folder = open_folder(place.path());
    begin(*folder, "runs", "h");
    REQUIRE_FALSE(folder->finish({"over", "h", {}}));
    const auto size = fs::file_size(place.path() / "journal");
    CHECK(try_begin(*folder, "runs", "h") == std::errc::invalid_argument);
    CHECK(try_begin(*folder, "over", "h") == std::errc::invalid_argument);
    const std::string id = "twice", head = "h", record = "r", unknown = "unknown";
    CHECK(folder->append({{{&id, &head}, {&id, &head}}, {}}) == std::errc::invalid_argument);
    CHECK(folder->append({{{&id, &head}}, {{&id, &record}, {&unknown, &record}}}) ==
          std::errc::invalid_argument);
    CHECK(fs::file_size(place.path() / "journal") == size);
    CHECK_FALSE(folder->append({{{&id, &head}}, {{&id, &record}}}));
  }
  stored_folder::contents found;
  const auto folder = open_folder(place.path(), &found);
  REQUIRE(found.running.size() == 2);
  CHECK(found.running[1] == stored_bytes{"twice", "h", {"r"}});
}

TEST_CASE("what is forgotten or erased leaves the disk") {
  const scratch_folder place;
  const std::string secret = "the words of a user";
  const auto lies_there = [&] {
    for (const auto& file : fs::directory_iterator(place.path())) {
      std::ifstream in(file.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      if (text.find(secret) != std::string::npos) return true;
    }
    return false;
  };
  const stored_bytes kept{"kept", "h", {"k"}};
  const auto running = [&](const std::string& id) { return id == "kept" ? &kept : nullptr; };
  const std::chrono::steady_clock::time_point start{};
  auto folder = open_folder(place.path());
  begin(*folder, "kept", "h");
  begin(*folder, "cancelled", secret);
  begin(*folder, "done", secret);
  REQUIRE_FALSE(add(*folder, {{"kept", "k"}, {"cancelled", secret}, {"done", secret}}));
  CHECK_FALSE(folder->tidy(start, running)); // there are no dead bytes
  CHECK(lies_there());
  folder->forget("cancelled");
  REQUIRE_FALSE(folder->finish({"done", secret, {secret}}));
  CHECK(folder->erase("kept") == std::errc::no_such_file_or_directory);
  CHECK(folder->erase("unknown") == std::errc::no_such_file_or_directory);
  REQUIRE_FALSE(folder->erase("done"));
  CHECK(folder->erase("done") == std::errc::no_such_file_or_directory);
  CHECK(folder->read("done").code() == std::errc::no_such_file_or_directory);
  CHECK(lies_there());
  REQUIRE_FALSE(folder->tidy(start, running));
  CHECK_FALSE(lies_there());
  CHECK(folder->bytes() == bytes_in(place.path()));

  begin(*folder, "again", secret);
  folder->forget("again");
  REQUIRE_FALSE(folder->tidy(start + std::chrono::milliseconds(999), running));
  CHECK(lies_there());
  REQUIRE_FALSE(folder->tidy(start + std::chrono::seconds(1), running));
  CHECK_FALSE(lies_there());

  folder.reset();
  stored_folder::contents found;
  folder = open_folder(place.path(), &found);
  CHECK(found.over.empty());
  REQUIRE(found.running.size() == 1);
  CHECK(found.running[0] == kept);
}

TEST_CASE("a journal that is mostly dead and large is rewritten at once") {
  const scratch_folder place;
  const auto folder = open_folder(place.path());
  const stored_bytes small{"small", "h", {}};
  const auto running = [&](const std::string&) { return &small; };
  const std::chrono::steady_clock::time_point start{};
  begin(*folder, "small", "h");
  begin(*folder, "first", "h");
  folder->forget("first");
  REQUIRE_FALSE(folder->tidy(start, running));
  begin(*folder, "large", std::string(9 << 20, 'x'));
  folder->forget("large");
  CHECK(folder->bytes() > 9 << 20);
  REQUIRE_FALSE(folder->tidy(start + std::chrono::milliseconds(1), running));
  CHECK(folder->bytes() < 200);
}

TEST_CASE("responses are read on other threads while they are written and erased") {
  const scratch_folder place;
  const auto folder = open_folder(place.path());
  const stored_bytes one{"a", std::string(5000, 'h'), {std::string(50'000, 'r')}};
  std::atomic<bool> stop{false};
  std::atomic<int> good{0}, bad{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      while (!stop) {
        const auto read = folder->read("a");
        if (read.ok())
          (read.value() == one ? good : bad)++;
        else if (read.code() != std::errc::no_such_file_or_directory)
          bad++;
      }
    });
  for (int i = 0; i < 2000 && (i < 50 || good < 20); ++i) {
    CHECK_FALSE(folder->finish(one));
    CHECK_FALSE(folder->finish(one));
    CHECK_FALSE(folder->erase("a"));
  }
  stop = true;
  for (auto& reader : readers)
    reader.join();
  CHECK(bad == 0);
}
