// Stored responses on a disk that fails at any system call.
#include <algorithm>
#include <cerrno>
#include <string>
#include <unistd.h>
#include <vector>

#include "tests/catch.hpp"
#include "tests/net/stored/memory_files.hpp"
#include "tests/net/stored/stored_script.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;
using sync_mode = stored_folder::sync;

namespace {

/// The state that a process would find if it started now.
stored_state on_disk(const memory_files& files) {
  auto disk = files.disk_copy();
  stored_folder::contents found;
  const auto folder = open_folder("/folder", &found, sync_mode::never, disk);
  return state_of(*folder, found);
}

bool has_temporary(const memory_files& files) {
  const auto names = files.names();
  return std::any_of(names.begin(), names.end(),
                     [](const auto& name) { return name.ends_with(".new"); });
}

struct fault {
  int call = 0;
  int n = 1; ///< the number of calls that fail
  int error = EIO;
  bool after_half = false;
};

/// Makes a sequence of calls to a stored_folder (`script`, see stored_script.hpp) on a disk that
/// fails as `planted` says, and repairs the disk after the first call that failed. Returns whether
/// any call failed.
bool run_with(const std::vector<stored_call>& script, sync_mode how, const fault& planted) {
  memory_files files;
  const auto folder = open_folder("/folder", nullptr, how, files);
  script_runner runner(*folder);
  files.fail_at(planted.call, planted.n, planted.error, planted.after_half);
  bool is_known_to_disk = true; // false while an end may wait for the next frame
  for (const auto& call : script) {
    const auto before = runner.state();
    const auto after = script_runner::after(before, call);
    CAPTURE(call.text(), describe(before));
    const auto error = runner.run(call);
    if (error) {
      REQUIRE(error.value() == planted.error);
      REQUIRE(files.has_failed());
      const auto now = on_disk(files);
      CAPTURE(describe(now));
      if (is_known_to_disk && how == sync_mode::never)
        REQUIRE(now == before);
      else if (is_known_to_disk)
        REQUIRE((now == before || now == after)); // syncing failed, after the bytes were written
      files.repair();
      if (planted.n == 1) REQUIRE_FALSE(has_temporary(files));
      REQUIRE_FALSE(runner.run(call));
    } else if (is_known_to_disk && files.has_failed() &&
               call.kind != stored_call::operation::forget) {
      REQUIRE(on_disk(files) == after);
    }
    REQUIRE(runner.state() == after);
    is_known_to_disk = !files.has_failed();
  }
  files.repair();
  // After one more call that writes, everything is on the disk.
  REQUIRE_FALSE(runner.run({stored_call::operation::step, {"last"}, {}, ""}));
  REQUIRE(describe(on_disk(files)) == describe(runner.state()));
  REQUIRE_FALSE(runner.run({stored_call::operation::finish, {}, {}, "last"}));
  REQUIRE_FALSE(runner.run({stored_call::operation::tidy, {}, {}, ""}));
  REQUIRE(describe(on_disk(files)) == describe(runner.state()));
  // A temporary file that could not be removed stays until the next start.
  if (!has_temporary(files)) REQUIRE(folder->bytes() == files.bytes());
  return files.has_failed();
}

} // namespace

TEST_CASE("a call that the disk fails changes nothing, and succeeds when the disk does again") {
  for (std::uint32_t seed = 1; seed <= 2; ++seed) {
    const auto script = random_script(seed, 30);
    for (const auto how : {sync_mode::never, sync_mode::step}) {
      int call = 0;
      bool failed = true;
      for (; failed; ++call)
        for (const int n : {1, 2, 1000})
          for (const int error : {ENOSPC, EIO, EROFS}) {
            CAPTURE(seed, static_cast<int>(how), call, n, error);
            failed = run_with(script, how, {call, n, error, false});
            if (error == ENOSPC) failed = run_with(script, how, {call, n, error, true});
          }
      CHECK(call > 25);
    }
  }
}

TEST_CASE("a folder that fails while it is opened says so, and opens when the disk works again") {
  memory_files files;
  const auto script = random_script(3, 40);
  stored_state expected;
  {
    const auto folder = open_folder("/folder", nullptr, sync_mode::never, files);
    script_runner runner(*folder);
    for (const auto& call : script)
      REQUIRE_FALSE(runner.run(call));
    expected = runner.state();
  }
  REQUIRE_FALSE(expected.over.empty());
  REQUIRE_FALSE(expected.running.empty());
  int n_refused = 0;
  bool failed = true;
  for (int call = 0; failed; ++call)
    for (const int error : {EIO, ENOSPC, EROFS, EMFILE, EACCES}) {
      CAPTURE(call, error);
      auto disk = files.disk_copy();
      disk.fail_at(call, 1, error);
      stored_folder::contents found;
      auto opened = stored_folder::open("/folder", sync_mode::step, found, disk);
      failed = disk.has_failed();
      if (!opened.ok()) {
        ++n_refused;
        REQUIRE(opened.code().find("`responses.folder` /folder") == 0);
        REQUIRE(opened.code().find(std::error_code(error, std::generic_category()).message()) !=
                std::string::npos);
      } else if (failed && describe(state_of(*opened.value(), found)) != describe(expected)) {
        REQUIRE(found.warnings.size() == 1);
        REQUIRE(found.warnings[0].find("/folder/r") != std::string::npos);
      }
      opened = failure<std::string>{"", ""};
      REQUIRE(describe(on_disk(disk)) == describe(expected));
    }
  CHECK(n_refused > 20);
}

TEST_CASE("a folder of another user is refused, and so is one that stays open to others") {
  memory_files files;
  files.bytes_of("resp_1.response") = "x";
  const auto refusal = [&] {
    stored_folder::contents found;
    return stored_folder::open("/folder", sync_mode::never, found, files).code();
  };
  files.owner = ::geteuid() + 1;
  CHECK(refusal().find("belongs to user") != std::string::npos);
  files.owner = ::geteuid();
  files.mode = 0750;
  files.fail_at(3, 1, EPERM);
  CHECK(refusal().find("is open to other users") != std::string::npos);
  CHECK(files.names().size() == 1);
}

TEST_CASE("on a full disk responses can still be erased") {
  memory_files files;
  const auto folder = open_folder("/folder", nullptr, sync_mode::step, files);
  REQUIRE_FALSE(try_begin(*folder, "a", "h"));
  files.fail_at(5, 1, ENOSPC); // the end that finish() writes
  REQUIRE_FALSE(folder->finish({"a", "h", {}}));
  REQUIRE(files.has_failed());
  files.fail_at(0, 1, ENOSPC);
  REQUIRE_FALSE(folder->erase("a"));
  CHECK(on_disk(files) == stored_state{});
}

TEST_CASE("a response is not erased while the journal would let it run again") {
  memory_files files;
  const auto folder = open_folder("/folder", nullptr, sync_mode::never, files);
  REQUIRE_FALSE(try_begin(*folder, "a", "h"));
  files.fail_at(3, 2, EIO); // the end that finish() writes, and cutting it off
  REQUIRE_FALSE(folder->finish({"a", "h", {}}));
  REQUIRE(files.has_failed());
  files.fail_at(0, 1, EIO);
  CHECK(folder->erase("a") == std::errc::io_error);
  CHECK(folder->read("a").ok());
  CHECK(on_disk(files).over.contains("a"));
  CHECK_FALSE(folder->erase("a"));
  CHECK(on_disk(files) == stored_state{});
}

TEST_CASE("a response whose finish failed at its end can be forgotten") {
  memory_files files;
  const auto folder = open_folder("/folder", nullptr, sync_mode::finished, files);
  REQUIRE_FALSE(try_begin(*folder, "a", "h"));
  files.fail_at(4, 1, EIO); // syncing the folder
  CHECK(folder->finish({"a", "h", {}}) == std::errc::io_error);
  CHECK(on_disk(files).over.contains("a"));
  CHECK(folder->bytes() == files.bytes());
  CHECK(folder->erase("a") == std::errc::no_such_file_or_directory);
  folder->forget("a");
  CHECK(on_disk(files) == stored_state{});
  CHECK(folder->bytes() == files.bytes());
}

TEST_CASE("what a failed step left in the journal is cut off before anything else is written") {
  memory_files files;
  const auto folder = open_folder("/folder", nullptr, sync_mode::never, files);
  REQUIRE_FALSE(try_begin(*folder, "a", "h"));
  const auto size = [&] { return static_cast<std::int64_t>(files.bytes_of("journal").size()); };
  const auto before = size();
  const std::string large(1000, 'x');
  files.fail_at(0, 1, ENOSPC, true);
  CHECK(add(*folder, {{"a", large}}) == std::errc::no_space_on_device);
  CHECK(size() == before);
  files.fail_at(0, 2, ENOSPC, true); // writing, and cutting it off
  CHECK(add(*folder, {{"a", large}}) == std::errc::no_space_on_device);
  CHECK(size() > before);
  files.fail_at(0, 1, EIO);
  const int n_writes = files.n_writes;
  CHECK(add(*folder, {{"a", "b"}}) == std::errc::io_error);
  CHECK(files.n_writes == n_writes);
  CHECK_FALSE(add(*folder, {{"a", "b"}}));
  CHECK(size() == folder->bytes());
  CHECK(on_disk(files).running.at("a").records == std::vector<std::string>{"b"});
}

TEST_CASE("a journal whose new name could not be synced is synced with the next step") {
  const auto nothing_runs = [](const std::string&) -> const stored_bytes* { return nullptr; };
  for (const auto how : {sync_mode::step, sync_mode::finished}) {
    memory_files files;
    const auto folder = open_folder("/folder", nullptr, how, files);
    REQUIRE_FALSE(try_begin(*folder, "a", "h"));
    REQUIRE_FALSE(folder->finish({"a", "h", {}}));
    files.fail_at(4, 1, EIO);
    REQUIRE(folder->tidy({}, nothing_runs) == std::errc::io_error);
    REQUIRE(files.n_unsynced_names() > 0);
    if (how == sync_mode::step) {
      REQUIRE_FALSE(try_begin(*folder, "b", "h"));
      const auto disk = files.after_power_failure(unsynced_bytes::none, 0);
      CHECK(on_disk(disk).running.contains("b"));
    } else {
      // The journal's name is synced before the file is removed: the old journal would run "a".
      files.n_syncs = 0;
      REQUIRE_FALSE(folder->erase("a"));
      CHECK(files.n_syncs == 2);
    }
  }
}

TEST_CASE("a failed rewriting is not tried again at once") {
  memory_files files;
  const auto folder = open_folder("/folder", nullptr, sync_mode::never, files);
  const std::string large(9 << 20, 'x');
  REQUIRE_FALSE(try_begin(*folder, "large", large));
  folder->forget("large");
  const auto nothing_runs = [](const std::string&) -> const stored_bytes* { return nullptr; };
  std::chrono::steady_clock::time_point now{};
  files.fail_at(0, 1000, ENOSPC);
  CHECK(folder->tidy(now, nothing_runs) == std::errc::no_space_on_device);
  CHECK_FALSE(folder->tidy(now + std::chrono::milliseconds(999), nothing_runs));
  CHECK(folder->tidy(now + std::chrono::seconds(1), nothing_runs) == std::errc::no_space_on_device);
  files.repair();
  CHECK_FALSE(folder->tidy(now + std::chrono::seconds(2), nothing_runs));
  CHECK(folder->bytes() < 100);
}

TEST_CASE("a step of a thousand responses is one write") {
  for (const auto how : {sync_mode::never, sync_mode::finished, sync_mode::step}) {
    memory_files files;
    const auto folder = open_folder("/folder", nullptr, how, files);
    std::vector<std::string> ids;
    std::vector<std::string> records;
    const std::string head = "head";
    for (int i = 0; i < 1000; ++i) {
      ids.push_back("resp_" + std::to_string(1'000'000 + i));
      records.push_back(std::string(40, 'r') + std::to_string(i));
    }
    stored_folder::step begins;
    stored_folder::step more;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      begins.begins.push_back({&ids[i], &head});
      more.records.push_back({&ids[i], &records[i]});
    }
    files.n_writes = files.n_syncs = 0;
    REQUIRE_FALSE(folder->append(begins));
    REQUIRE_FALSE(folder->append(more));
    CHECK(files.n_writes == 2);
    CHECK(files.n_syncs == (how == sync_mode::step ? 2 : 0));
    REQUIRE_FALSE(folder->append({}));
    CHECK(files.n_writes == 2);
    // An end that could not be written is written with the next step.
    files.fail_at(0, 2, EIO);
    folder->forget(ids[0]);
    files.repair();
    more.records.erase(more.records.begin());
    files.n_writes = 0;
    REQUIRE_FALSE(folder->append(more));
    CHECK(files.n_writes == 1);
  }
}
