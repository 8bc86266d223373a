// Stored responses when the process ends, or the power fails, between any two system calls.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/net/stored/memory_files.hpp"
#include "tests/net/stored/stored_script.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;
using sync_mode = stored_folder::sync;

namespace {

struct crashed {
  memory_files disk;
  stored_state before; ///< the state before `call`, in which the process ended
  stored_state after;
  stored_call call;
  std::set<std::string> erased; ///< the first records of erased responses
};

/// Runs a script until the process ends at modifying system call number `end_at`. Returns false if
/// the script runs to its end.
bool run_until(const std::vector<stored_call>& script, sync_mode how, int end_at, bool in_middle,
               crashed& to) {
  memory_files files;
  files.end_at(end_at, in_middle);
  to = {};
  bool ended = false;
  try {
    stored_folder::contents found;
    const auto folder = open_folder("/folder", &found, how, files);
    script_runner runner(*folder);
    for (const auto& call : script) {
      to.before = runner.state();
      to.after = script_runner::after(to.before, call);
      to.call = call;
      if (runner.run(call)) FAIL("a call failed on a sound disk: " << call.text());
      if (call.kind == stored_call::operation::erase)
        to.erased.insert(to.before.over.at(call.id).records.front());
    }
  } catch (const process_ended&) {
    ended = true;
  }
  to.disk = files.disk_copy();
  return ended;
}

struct recovered {
  stored_state state;
  stored_folder::contents found;
};

recovered recover(memory_files& disk, sync_mode how) {
  recovered r;
  const auto folder = open_folder("/folder", &r.found, how, disk);
  r.state = state_of(*folder, r.found);
  return r;
}

/// Checks that the folder works after a crash, and that new entries are there after another one.
void check_usable(memory_files disk, sync_mode how, stored_state state, bool tidies) {
  {
    const auto folder = open_folder("/folder", nullptr, how, disk);
    script_runner runner(*folder, state);
    stored_call step{stored_call::operation::step, {"new"}, {{"new", "1"}}, ""};
    CHECK_FALSE(runner.run(step));
    if (tidies) CHECK_FALSE(runner.run({stored_call::operation::tidy, {}, {}, ""}));
    CHECK_FALSE(runner.run({stored_call::operation::step, {}, {{"new", "2"}}, ""}));
    CHECK_FALSE(runner.run({stored_call::operation::finish, {}, {}, "new"}));
    const auto over = runner.state().over;
    for (const auto& [id, whole] : over)
      if (id != "new") CHECK_FALSE(runner.run({stored_call::operation::erase, {}, {}, id}));
    state = runner.state();
    CHECK(folder->bytes() == disk.bytes());
  }
  auto again = disk.disk_copy();
  const auto r = recover(again, how);
  CHECK(r.found.warnings.empty());
  CHECK(describe(r.state) == describe(state));
  for (const auto& name : again.names())
    CHECK(name.find(".new") == std::string::npos);
}

bool is_either(const stored_state& state, const crashed& c) {
  return state == c.before || state == c.after;
}

/// For each response id, all contents that this response had in the course of a sequence of calls
/// to a stored_folder (`script`, see stored_script.hpp): `runs` while the response was running, and
/// `over` after its end.
struct history {
  std::multimap<std::string, stored_bytes> runs, over;

  explicit history(const std::vector<stored_call>& script) {
    stored_state state;
    for (const auto& call : script) {
      state = script_runner::after(state, call);
      for (const auto& [id, whole] : state.running)
        runs.emplace(id, whole);
      for (const auto& [id, whole] : state.over)
        over.emplace(id, whole);
    }
  }
  static bool holds(const std::multimap<std::string, stored_bytes>& in, const stored_bytes& one) {
    const auto [begin, end] = in.equal_range(one.id);
    return std::any_of(begin, end, [&](const auto& known) { return known.second == one; });
  }
};

} // namespace

TEST_CASE(
    "a process that ends between any two system calls leaves a state before or after a call") {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const auto script = random_script(seed, 40);
    const auto how = seed % 2 == 0 ? sync_mode::never : sync_mode::step;
    int point = 0;
    for (bool ended = true; ended; ++point)
      for (const bool in_middle : {false, true}) {
        crashed c;
        ended = run_until(script, how, point, in_middle, c);
        CAPTURE(seed, point, in_middle, c.call.text(), describe(c.before), describe(c.after));
        const auto r = recover(c.disk, how);
        CAPTURE(describe(r.state));
        REQUIRE((ended ? is_either(r.state, c) : r.state == c.after));
        for (const auto& warning : r.found.warnings)
          CHECK(warning.find("bytes at its end") != std::string::npos);
        check_usable(c.disk.disk_copy(), how, r.state, point % 2 == 0);
      }
    CHECK(point > 50);
  }
}

TEST_CASE("a process that ends while it opens a folder after a crash loses nothing more") {
  const auto script = random_script(11, 30);
  int n_opens = 0;
  for (int point = 0;; point += 3) {
    crashed c;
    if (!run_until(script, sync_mode::finished, point, point % 2 == 0, c)) break;
    auto undisturbed = c.disk.disk_copy();
    const auto expected = recover(undisturbed, sync_mode::finished);
    for (int second = 0;; ++second) {
      auto disk = c.disk.disk_copy();
      disk.end_at(second, second % 2 == 0);
      bool ended = false;
      try {
        recover(disk, sync_mode::finished);
      } catch (const process_ended&) {
        ended = true;
      }
      if (!ended) break;
      ++n_opens;
      auto after = disk.disk_copy();
      REQUIRE(recover(after, sync_mode::finished).state == expected.state);
    }
  }
  CHECK(n_opens > 50);
}

TEST_CASE("a power failure loses no call that has returned, where each step is synced") {
  for (std::uint32_t seed = 21; seed <= 26; ++seed) {
    const auto script = random_script(seed, 40);
    crashed c;
    for (int point = 0; run_until(script, sync_mode::step, point, point % 2 == 0, c); ++point)
      for (const auto bytes : all_unsynced_bytes)
        for (std::size_t names = 0; names <= c.disk.n_unsynced_names(); ++names) {
          CAPTURE(seed, point, static_cast<int>(bytes), names, c.call.text());
          auto disk = c.disk.after_power_failure(bytes, names);
          const auto r = recover(disk, sync_mode::step);
          CAPTURE(describe(c.before), describe(c.after), describe(r.state));
          REQUIRE(is_either(r.state, c));
        }
  }
}

TEST_CASE("a power failure loses nothing that is over, where finished responses are synced") {
  for (std::uint32_t seed = 31; seed <= 36; ++seed) {
    const auto script = random_script(seed, 40);
    const history known(script);
    crashed c;
    for (int point = 0; run_until(script, sync_mode::finished, point, point % 2 == 0, c); ++point)
      for (const auto bytes : all_unsynced_bytes)
        for (std::size_t names = 0; names <= c.disk.n_unsynced_names(); ++names) {
          CAPTURE(seed, point, static_cast<int>(bytes), names, c.call.text());
          auto disk = c.disk.after_power_failure(bytes, names);
          const auto r = recover(disk, sync_mode::finished);
          CAPTURE(describe(c.before), describe(c.after), describe(r.state));
          REQUIRE((r.state.over == c.before.over || r.state.over == c.after.over));
          for (const auto& [id, whole] : r.state.running) {
            REQUIRE(history::holds(known.runs, whole));
            REQUIRE_FALSE(c.before.over.contains(id));
            if (!whole.records.empty()) REQUIRE_FALSE(c.erased.contains(whole.records.front()));
          }
        }
  }
}

TEST_CASE("what a restart found to be over stays so when the power fails") {
  for (std::uint32_t seed = 61; seed <= 63; ++seed) {
    const auto script = random_script(seed, 40);
    crashed c;
    for (int point = 0; run_until(script, sync_mode::finished, point, point % 2 == 0, c); ++point) {
      auto disk = c.disk.disk_copy();
      const auto first = recover(disk, sync_mode::finished);
      for (const auto bytes : all_unsynced_bytes)
        for (std::size_t names = 0; names <= disk.n_unsynced_names(); ++names) {
          CAPTURE(seed, point, static_cast<int>(bytes), names, describe(first.state));
          auto after = disk.after_power_failure(bytes, names);
          const auto r = recover(after, sync_mode::finished);
          CAPTURE(describe(r.state));
          REQUIRE(r.state.over == first.state.over);
        }
    }
  }
}

TEST_CASE("what is erased after a restart stays erased when the power fails") {
  for (std::uint32_t seed = 51; seed <= 53; ++seed) {
    const auto script = random_script(seed, 40);
    crashed c;
    for (int point = 0; run_until(script, sync_mode::finished, point, false, c); ++point) {
      CAPTURE(seed, point, describe(c.before));
      auto disk = c.disk.disk_copy();
      stored_folder::contents found;
      {
        const auto folder = open_folder("/folder", &found, sync_mode::finished, disk);
        for (const auto& one : found.over)
          REQUIRE_FALSE(folder->erase(one.id));
      }
      for (const auto bytes : all_unsynced_bytes) {
        auto after = disk.after_power_failure(bytes, disk.n_unsynced_names());
        const auto r = recover(after, sync_mode::finished);
        REQUIRE(r.state.over.empty());
        for (const auto& one : found.over)
          REQUIRE_FALSE(r.state.running.contains(one.id));
      }
    }
  }
}

TEST_CASE("a power failure without syncing leaves only whole responses, and a folder that opens") {
  for (std::uint32_t seed = 41; seed <= 43; ++seed) {
    const auto script = random_script(seed, 40);
    const history known(script);
    crashed c;
    for (int point = 0; run_until(script, sync_mode::never, point, point % 2 == 0, c); ++point)
      for (const auto bytes : all_unsynced_bytes)
        for (std::size_t names = 0; names <= c.disk.n_unsynced_names();
             names += 1 + c.disk.n_unsynced_names() / 4) {
          CAPTURE(seed, point, static_cast<int>(bytes), names, c.call.text());
          auto disk = c.disk.after_power_failure(bytes, names);
          const auto r = recover(disk, sync_mode::never);
          for (const auto& [id, whole] : r.state.running)
            REQUIRE(history::holds(known.runs, whole));
          for (const auto& [id, whole] : r.state.over)
            REQUIRE(history::holds(known.over, whole));
        }
  }
}
