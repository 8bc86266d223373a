// The byte format of stored responses' files, and how damaged bytes are read.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "net/stored/journal_format.hpp"
#include "net/stored/little_endian.hpp"
#include "net/stored/response_file.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/net/stored/hostile_files.hpp"
#include "tests/net/stored/memory_files.hpp"
#include "tests/net/stored/stored_script.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;
namespace fs = std::filesystem;

namespace {

std::string hex(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char c : bytes) {
    text += digits[c >> 4];
    text += digits[c & 15];
  }
  return text;
}

stored_folder::contents opened(memory_files& files) {
  stored_folder::contents found;
  open_folder("/folder", &found, stored_folder::sync::never, files);
  return found;
}

bool mentions(const std::vector<std::string>& warnings, const std::string& text) {
  return std::any_of(warnings.begin(), warnings.end(), [&](const auto& warning) {
    return warning.find("`responses.folder`") == 0 && warning.find(text) != std::string::npos;
  });
}

/// The number of good bytes of a journal, and the responses that run.
journal_content content_of(std::string_view bytes) {
  journal_content found;
  memory_source source(bytes);
  REQUIRE_FALSE(read_journal(source, found));
  return found;
}

std::string other_version(std::string bytes) {
  bytes[8] = 2;
  return with_right_sums(bytes);
}

} // namespace

// Written by Python's struct and xxhash 3.5.0 from the description in net/stored/README.md.
TEST_CASE("the bytes of both formats are those of version 1") {
  CHECK(hex(sample_journal()) ==
        "7477696c6c6a6e6c0100000000000000fba3fdfb1c836f6d1400000001010000000b000000067265"
        "73705f3168656164ffab96cc64ba68bb2800000001020000000700000006726573705f3202010000"
        "00060000007265636f7264020200000000000000bd56e720190bcd8a3c0000000301000000000000"
        "0001030000001300000006726573705f31616e6f74686572206865616402030000000e000000616e"
        "6f74686572207265636f72640d410571e528fe84");
  CHECK(hex(sample_response()) ==
        "7477696c6c7273700100000000000000f5891f74cdeb0ff806000000040000000000000003000000"
        "00000000190000000000000067840ce2363669b8726573705f3168656164aa495b94bfbff3c70600"
        "00007265636f7264000000000700000074686520656e64");
}

TEST_CASE("a journal that is cut off anywhere holds its whole frames, and says what was lost") {
  const auto journal = sample_journal();
  std::size_t good = 0;
  for (std::size_t n = 0; n <= journal.size(); ++n) {
    CAPTURE(n);
    memory_files files;
    files.bytes_of("journal") = journal.substr(0, n);
    const auto expected = content_of(journal.substr(0, n));
    if (n >= preamble_bytes && static_cast<std::size_t>(expected.good_bytes) == n) good = n;
    const auto found = opened(files);
    REQUIRE(found.running.size() == expected.runs.size());
    if (n > 0 && n < preamble_bytes) {
      REQUIRE(mentions(found.warnings, "journal.damaged."));
    } else if (n > good) {
      REQUIRE(mentions(found.warnings, "lost " + std::to_string(n - good) + " bytes"));
      REQUIRE(files.bytes_of("journal").size() == good);
    } else {
      REQUIRE(found.warnings.empty());
    }
    REQUIRE(opened(files).warnings.empty());
  }
  CHECK(good == journal.size());
}

TEST_CASE("no changed bit of a file is read as something that was not written") {
  const auto journal = sample_journal();
  std::vector<std::string> states;
  for (std::size_t n = preamble_bytes; n <= journal.size(); ++n) {
    std::string text;
    for (const auto& [number, run] : content_of(journal.substr(0, n)).runs)
      text += describe(stored_state{{{run.whole.id, run.whole}}, {}});
    if (states.empty() || states.back() != text) states.push_back(text);
  }
  CHECK(states.size() == 4);
  for (std::size_t i = 0; i < journal.size() * 8; ++i) {
    auto changed = journal;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << i % 8));
    std::string text;
    for (const auto& [number, run] : content_of(changed).runs)
      text += describe(stored_state{{{run.whole.id, run.whole}}, {}});
    REQUIRE((text != states.back() && std::count(states.begin(), states.end(), text) == 1));
  }
  const auto response = sample_response();
  for (std::size_t i = 0; i < response.size() * 8; ++i) {
    auto changed = response;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << i % 8));
    memory_source source(changed);
    REQUIRE(read_response(source).code() == std::errc::bad_message);
  }
  for (std::size_t n = 0; n < response.size(); ++n) {
    memory_source source(std::string_view(response).substr(0, n));
    REQUIRE(read_response(source).code() == std::errc::bad_message);
  }
}

TEST_CASE("a frame counts only at the place where it was written") {
  const auto journal = sample_journal();
  std::vector<std::size_t> ends;
  for (std::size_t n = preamble_bytes; n <= journal.size(); ++n)
    if (static_cast<std::size_t>(content_of(journal.substr(0, n)).good_bytes) == n)
      ends.push_back(n);
  REQUIRE(ends.size() == 4);
  const auto second = journal.substr(ends[1], ends[2] - ends[1]);
  const auto twice = journal.substr(0, ends[2]) + second;
  CHECK(static_cast<std::size_t>(content_of(twice).good_bytes) == ends[2]);
  const auto without = journal.substr(0, ends[1]) + journal.substr(ends[2]);
  CHECK(static_cast<std::size_t>(content_of(without).good_bytes) == ends[1]);
}

TEST_CASE("entries that break a rule end the journal, whatever their checksum says") {
  const auto good_after = [](const std::function<void(frame_writer&)>& write) {
    auto bytes = sample_journal();
    frame_writer frame;
    frame.start();
    write(frame);
    bytes += frame.finish(static_cast<std::int64_t>(bytes.size()));
    const auto found = content_of(bytes);
    CHECK(broken_promise(bytes) == nullptr);
    return static_cast<std::size_t>(found.good_bytes) == bytes.size();
  };
  CHECK(good_after([](auto& f) { f.begin(4, "new", "h"); }));
  CHECK(good_after([](auto& f) { f.begin(4, "new", "h"), f.end(4), f.begin(5, "new", "h"); }));
  CHECK_FALSE(good_after([](auto& f) { f.begin(3, "new", "h"); }));
  CHECK_FALSE(good_after([](auto& f) { f.begin(5, "new", "h"); }));
  CHECK_FALSE(good_after([](auto& f) { f.begin(0, "new", "h"); }));
  CHECK_FALSE(good_after([](auto& f) { f.begin(4, "resp_1", "h"); }));
  CHECK_FALSE(good_after([](auto& f) { f.begin(4, "new", "h"), f.begin(5, "new", "h"); }));
  CHECK_FALSE(good_after([](auto& f) { f.begin(4, "../new", "h"); }));
  CHECK_FALSE(good_after([](auto& f) { f.begin(4, "", "h"); }));
  CHECK_FALSE(good_after([](auto& f) { f.record(1, "of one that ended"); }));
  CHECK_FALSE(good_after([](auto& f) { f.record(4, "of one to come"), f.begin(4, "new", "h"); }));
  CHECK_FALSE(good_after([](auto& f) { f.end(3), f.record(3, "after its end"); }));
  CHECK_FALSE(good_after([](auto& f) { f.end(3), f.end(3); }));
  CHECK_FALSE(good_after([](auto& f) { f.record(3, "good"), f.end(7); }));
  CHECK_FALSE(good_after([](auto&) {})); // nothing writes a frame without entries
}

TEST_CASE("lengths that the file does not have are not believed") {
  auto journal = sample_journal();
  put_integer_at(journal, preamble_bytes, std::uint32_t{0xFFFFFFFF});
  CHECK(content_of(journal).good_bytes == preamble_bytes);
  for (const std::size_t at : {24u, 28u, 36u, 44u})
    for (const std::uint64_t length :
         {~std::uint64_t{0}, std::uint64_t{1} << 62, std::uint64_t{1} << 31, std::uint64_t{18}}) {
      auto response = sample_response();
      if (at == 24)
        put_integer_at(response, at, static_cast<std::uint32_t>(length));
      else
        put_integer_at(response, at, length);
      response = with_right_sums(response);
      memory_source source(response);
      CHECK(read_response(source).code() == std::errc::bad_message);
    }
}

TEST_CASE("files of another version of the format are left as they are") {
  memory_files files;
  files.bytes_of("journal") = other_version(sample_journal());
  files.bytes_of("resp_1.response") = sample_response();
  files.bytes_of("x.response.new") = "left by an interrupted write";
  stored_folder::contents found;
  auto refused = stored_folder::open("/folder", stored_folder::sync::step, found, files);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.code().find("`responses.folder`: /folder/journal is of another version") == 0);
  CHECK(files.bytes_of("journal") == other_version(sample_journal()));

  files.bytes_of("journal") = sample_journal();
  files.bytes_of("resp_1.response") = other_version(sample_response());
  found = opened(files);
  CHECK(found.over.empty());
  CHECK(found.running.size() == 2);
  CHECK(mentions(found.warnings, "/folder/resp_1.response is of another version"));
  CHECK(files.bytes_of("resp_1.response") == other_version(sample_response()));
}

TEST_CASE("a damaged response is left out and logged, and can be erased or written anew") {
  memory_files files;
  for (const auto* id : {"resp_1", "resp_2", "resp_3"}) {
    files.bytes_of(std::string(id) + ".response") = sample_response();
    files.bytes_of(std::string(id) + ".response")[62] ^= 1; // a byte of the head
  }
  files.bytes_of("other.response") = sample_response(); // the file contains another id
  stored_folder::contents found;
  const auto folder = open_folder("/folder", &found, stored_folder::sync::never, files);
  CHECK(found.over.empty());
  CHECK(found.warnings.size() == 4);
  CHECK(mentions(found.warnings, "/folder/resp_1.response is damaged"));
  CHECK(mentions(found.warnings, "/folder/other.response is damaged"));
  CHECK(folder->read("resp_1").code() == std::errc::bad_message);
  CHECK(folder->read("other").code() == std::errc::bad_message);
  CHECK_FALSE(folder->erase("resp_1"));
  CHECK(folder->read("resp_1").code() == std::errc::no_such_file_or_directory);
  CHECK_FALSE(folder->finish({"resp_2", "h", {}}));
  CHECK(folder->read("resp_2").ok());
}

TEST_CASE("the journal counts where the file of a response is damaged after its beginning") {
  memory_files files;
  files.bytes_of("journal") = sample_journal();
  files.bytes_of("resp_1.response") = sample_response();
  files.bytes_of("resp_1.response").back() ^= 1;
  const auto found = opened(files);
  CHECK(found.over.empty());
  CHECK(found.running.size() == 2);
  CHECK(mentions(found.warnings, "/folder/resp_1.response is damaged"));
  files.bytes_of("resp_1.response").back() ^= 1;
  CHECK(opened(files).over.size() == 1);
  CHECK(opened(files).running.size() == 1);
}

TEST_CASE("a file that is no journal is moved away, and nothing of it is deleted") {
  memory_files files;
  files.bytes_of("journal") = "Dear diary, this is not a journal of twill.";
  const auto found = opened(files);
  REQUIRE(found.warnings.size() == 1);
  CHECK(mentions(found.warnings, "is now /folder/journal.damaged."));
  bool kept = false;
  for (const auto& name : files.names())
    kept |= name.starts_with("journal.damaged.") && files.bytes_of(name).starts_with("Dear diary");
  CHECK(kept);
  CHECK(opened(files).warnings.empty());
}

TEST_CASE("many damaged files are logged in few warnings, without their contents") {
  memory_files files;
  for (int i = 0; i < 100; ++i)
    files.bytes_of("resp_" + std::to_string(i) + ".response") = "the words of a user";
  const auto found = opened(files);
  CHECK(found.warnings.size() == 17);
  CHECK(mentions(found.warnings, "and 84 more"));
  CHECK_FALSE(mentions(found.warnings, "words"));
}

TEST_CASE("links, pipes and folders in place of files hang and mislead nobody") {
  const scratch_folder outside, place;
  const std::string id = "resp_1";
  std::ofstream(outside.path() / "whole", std::ios::binary) << sample_response();
  fs::create_symlink(outside.path() / "whole", place.path() / "resp_1.response");
  REQUIRE(::mkfifo((place.path() / "pipe.response").c_str(), 0600) == 0);
  fs::create_directory(place.path() / "folder.response");
  REQUIRE(::mkfifo((place.path() / "journal").c_str(), 0600) == 0);
  fs::create_symlink(outside.path() / "whole", place.path() / "new.response.new");
  stored_folder::contents found;
  {
    const auto folder = open_folder(place.path(), &found);
    CHECK(found.over.empty());
    CHECK(found.warnings.size() == 4);
    CHECK_FALSE(folder->finish({id, "h", {}}));
    CHECK(folder->read(id).ok());
  }
  CHECK(fs::exists(outside.path() / "whole"));
  CHECK(bytes_in(outside.path()) == static_cast<std::int64_t>(sample_response().size()));

  fs::remove(place.path() / "journal");
  fs::create_symlink(outside.path() / "whole", place.path() / "journal");
  auto refused = stored_folder::open(place.path(), stored_folder::sync::never, found);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.code().find("`responses.folder`") == 0);
}

TEST_CASE("random damage of files of stored responses breaks no promise") {
  fuzz::generator random(47);
  const std::vector<std::string> seeds{sample_journal(), sample_response()};
  int n_read = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto bytes =
        fuzz::mutate(random, seeds[random() % seeds.size()], seeds[random() % seeds.size()]);
    if (i % 4 != 0) bytes = with_right_sums(std::move(bytes));
    const char* broken = broken_promise(bytes);
    CAPTURE(i, hex(bytes));
    REQUIRE((broken == nullptr ? std::string() : std::string(broken)).empty());
    if (i % 8 != 0) continue;
    memory_files files;
    files.bytes_of("journal") = bytes;
    files.bytes_of("resp_1.response") = std::move(bytes);
    stored_folder::contents found;
    auto folder = stored_folder::open("/folder", stored_folder::sync::step, found, files);
    if (!folder.ok()) continue;
    ++n_read;
    REQUIRE_FALSE(folder.value()->finish({"new", "h", {}}));
    const auto state = state_of(*folder.value(), found);
    folder = failure<std::string>{"", ""};
    const auto again = opened(files);
    REQUIRE(again.running.size() == state.running.size());
  }
  CHECK(n_read > 1000);
}
