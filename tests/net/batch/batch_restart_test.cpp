// Batches that outlive their server: the server is stopped or killed, and the next server continues
// them.
#include <algorithm>
#include <csignal>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "net/batch/batch_description.hpp"
#include "tests/net/batch/batch_fixture.hpp"
#include "tests/support/few_lines.hpp"

using namespace twill;
using namespace twill::testing;
namespace fs = std::filesystem;

namespace {

/// Ends the server of a batch once its first lines are answered. Returns the batch's id.
std::string leave_half(const fs::path& folder, int n_lines, const std::string& window = "24h") {
  batch_fixture fixture(folder);
  const auto id = fixture.start(n_lines, window);
  REQUIRE(fixture.run([&] { return fixture.show(id).completed >= 4; }));
  REQUIRE(fixture.show(id).status == net::batch_status::in_progress);
  return id;
}

/// Changes a batch's description in the folder.
void change_description(const batch_scratch& kept, const std::string& id,
                        const std::function<void(net::batch&)>& change) {
  auto record = net::read_description(kept.text(id + ".batch"));
  REQUIRE(record.ok());
  change(record.value());
  kept.write(id + ".batch", net::describe_batch(record.value()));
}

std::size_t files_that_end_with(const fs::path& folder, const std::string& end) {
  std::size_t n = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    n += entry.path().filename().string().ends_with(end) ? 1 : 0;
  return n;
}

/// Runs a batch in a child process that is killed after `after`. True if the batch ended before.
bool ends_within(const fs::path& folder, const std::string& id, std::chrono::microseconds after) {
  const pid_t child = ::fork();
  if (child == 0) {
    batch_fixture fixture(folder);
    fixture.service->begin();
    ::_exit(fixture.run_until_ended(id) ? 0 : 1);
  }
  REQUIRE(child > 0);
  std::this_thread::sleep_for(after);
  ::kill(child, SIGKILL);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  return WIFEXITED(status);
}

} // namespace

// The thread sanitizer does not support threads in a forked process.
#ifndef __SANITIZE_THREAD__
TEST_CASE("A batch whose server is killed at any moment has each answer once") {
  const test::few_lines few;
  std::mt19937 dice(7);
  for (int round = 0; round < 5; ++round) {
    batch_scratch kept;
    std::string id;
    {
      batch_fixture fixture(kept.path);
      id = fixture.start(100);
    }
    for (unsigned tries = 0;; ++tries) {
      REQUIRE(tries < 2000);
      // Each try may take longer, so that one succeeds on a busy machine too.
      const std::chrono::microseconds after(dice() % (3'000 + 100 * tries * tries));
      if (ends_within(kept.path, id, after)) break;
    }
    batch_fixture fixture(kept.path);
    check_complete(fixture, id, 100);
    CHECK(files_that_end_with(kept.path, ".json") == 3); // nothing else is left
    CHECK(files_that_end_with(kept.path, ".new") == 0);
  }
}

TEST_CASE(
    "A batch that is cancelled before it begins names each line once, whoever kills its server") {
  constexpr int n_lines = 3000;
  std::mt19937 dice(9);
  batch_scratch kept;
  std::string id;
  {
    batch_fixture fixture(kept.path);
    id = fixture.start(n_lines);
    REQUIRE(fixture.service->cancel(id, "").ok());
  }
  for (unsigned tries = 0;; ++tries) {
    REQUIRE(tries < 2000);
    const std::chrono::microseconds after(dice() % (2'000 + 100 * tries * tries));
    if (ends_within(kept.path, id, after)) break;
  }
  batch_fixture fixture(kept.path);
  const auto ended = fixture.show(id);
  CHECK(ended.status == net::batch_status::cancelled);
  CHECK((ended.total == n_lines && ended.failed == n_lines && ended.completed == 0));
  const auto named = answers_in(fixture.content(ended.error_file_id));
  CHECK(named.size() == n_lines);
  CHECK(std::all_of(named.begin(), named.end(), [](const auto& one) { return one.second == 1; }));
}
#endif

TEST_CASE("A batch whose server ends between any two tasks, or is stopped, has each answer once") {
  const test::few_lines few;
  std::mt19937 dice(3);
  for (int round = 0; round < 3; ++round) {
    batch_scratch kept;
    std::string id, other;
    bool ended = false;
    for (int starts = 0; !ended; ++starts) {
      REQUIRE(starts < 500);
      batch_fixture fixture(kept.path);
      fixture.service->begin();
      if (starts == 0) {
        id = fixture.start(40);
        other = fixture.start(7);
      }
      fixture.run_some(static_cast<int>(dice() % 12));
      if (dice() % 2 == 0) {
        fixture.service->stop();
        fixture.run_posted();
        CHECK(fixture.engine().running() <= fixture.engine().submitted().size());
        fixture.run_some(static_cast<int>(dice() % 3)); // late events, after the stop
      }
      ended = net::is_final(fixture.show(id).status) && net::is_final(fixture.show(other).status);
      // An interrupted write leaves an incomplete line.
      const auto torn = fixture.show(id).output_under_way;
      if (!torn.empty() && dice() % 2 == 0)
        std::ofstream(kept.path / torn, std::ios::app) << R"({"id":"batch_req_1","custom_id":"r)";
    }
    batch_fixture fixture(kept.path);
    check_complete(fixture, id, 40);
    check_complete(fixture, other, 7);
  }
}

TEST_CASE("A stop leaves batches under way and cancels what they run") {
  batch_scratch kept;
  std::string id;
  {
    batch_fixture fixture(kept.path);
    fixture.engine().set_script([](const actors::request&) {
      script s;
      s.start_delay = 1h;
      return s;
    });
    id = fixture.start(8);
    fixture.run_posted();
    REQUIRE(fixture.engine().wait_running(3));
    fixture.service->stop();
    fixture.run_posted();
    CHECK(fixture.engine().wait_cancelled(3));
    CHECK(fixture.show(id).status == net::batch_status::in_progress);
    const auto input = fixture.show(id).input_file_id;
    CHECK_FALSE(fixture.service->files().erase(input, "").ok());
    // The next server's start ends the batch that is cancelled here.
    REQUIRE(fixture.service->cancel(id, "").ok());
    fixture.run_posted();
    CHECK(fixture.show(id).status == net::batch_status::cancelling);
  }
  batch_fixture fixture(kept.path);
  CHECK_FALSE(fixture.service->files().erase(fixture.show(id).input_file_id, "").ok());
  fixture.service->begin();
  REQUIRE(fixture.run_until_ended(id));
  CHECK(fixture.show(id).status == net::batch_status::cancelled);
  CHECK(answers_in(fixture.content(fixture.show(id).error_file_id)).size() == 8);
  CHECK(fixture.engine().submitted().empty());
  CHECK(fixture.service->files().erase(fixture.show(id).input_file_id, "").ok());
}

TEST_CASE("Without a folder a stop ends batches") {
  batch_fixture fixture("");
  fixture.engine().set_script([](const actors::request&) {
    script s;
    s.start_delay = 1h;
    return s;
  });
  const auto id = fixture.start(4);
  fixture.run_posted();
  fixture.service->stop();
  fixture.run_posted();
  const auto ended = fixture.show(id);
  CHECK(ended.status == net::batch_status::failed);
  CHECK(answers_in(fixture.content(ended.error_file_id)).size() == 4);
}

TEST_CASE("Batches that have ended are shown after a restart, to their tenant, in their order") {
  batch_scratch kept;
  std::vector<std::string> ids;
  net::batch before;
  {
    batch_fixture fixture(kept.path);
    for (int i = 0; i < 5; ++i)
      ids.push_back(fixture.start(5));
    for (const auto& id : ids)
      REQUIRE(fixture.run_until_ended(id));
    before = fixture.show(ids[2]);
    const auto others = fixture.create(fixture.upload(restart_lines(1), "two"), "24h", "two");
    REQUIRE(others.ok());
  }
  batch_fixture fixture(kept.path);
  const auto listed = fixture.service->batches().list("");
  REQUIRE(listed.size() == ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    CHECK(listed[i].id == ids[i]);
  CHECK(net::batch_json(fixture.show(ids[2])) == net::batch_json(before));
  CHECK(fixture.service->batches().list("two").size() == 1);
  CHECK_FALSE(fixture.service->batches().find(ids[0], "two"));
  const auto next = fixture.start(1);
  CHECK(fixture.service->batches().list("").back().id == next);
}

TEST_CASE("A batch that is forgotten loses its description") {
  batch_scratch kept;
  std::string first;
  {
    batch_fixture fixture(kept.path);
    const auto file = fixture.upload("");
    for (std::size_t i = 0; i <= net::batch_table::max_batches; ++i) {
      const auto created = fixture.create(file);
      REQUIRE(created.ok());
      if (i == 0) first = created.value().id;
      fixture.run_posted(); // the batch fails, since its file is empty
    }
    CHECK(files_that_end_with(kept.path, ".batch") == net::batch_table::max_batches);
    CHECK_FALSE(fs::exists(kept.path / (first + ".batch")));
  }
  // One batch too many, as left by a server that is killed before it removes the oldest.
  auto extra = batch_fixture(kept.path).service->batches().list("").back();
  extra.id = "batch_extra";
  ++extra.number;
  kept.write("batch_extra.batch", net::describe_batch(extra));
  batch_fixture fixture(kept.path);
  CHECK(fixture.service->batches().list("").size() == net::batch_table::max_batches);
  CHECK(fixture.service->batches().list("").back().id == "batch_extra");
  CHECK(files_that_end_with(kept.path, ".batch") == net::batch_table::max_batches);
}

TEST_CASE("A batch goes on only with the file that it read") {
  batch_scratch kept;
  const auto id = leave_half(kept.path, 30);
  const auto record = net::read_description(kept.text(id + ".batch"));
  REQUIRE(record.ok());
  const auto answered = answers_in(kept.text(record.value().output_under_way)).size();
  CHECK(answered >= 3);
  fs::remove(kept.path / record.value().input_file_id);
  fs::remove(kept.path / (record.value().input_file_id + ".json"));
  batch_fixture fixture(kept.path);
  fixture.service->begin();
  REQUIRE(fixture.run_until_ended(id));
  const auto ended = fixture.show(id);
  CHECK(ended.status == net::batch_status::failed);
  REQUIRE(ended.faults.size() == 1);
  CHECK(ended.faults.front().code == "file_not_found");
  CHECK(ended.completed == static_cast<std::int64_t>(answered));
  CHECK(answers_in(fixture.content(ended.output_file_id)).size() == answered);
}

TEST_CASE("A batch whose window passes while no server runs expires, unless it was done") {
  batch_scratch kept;
  const auto id = leave_half(kept.path, 30);
  SECTION("it was not") {
    change_description(kept, id, [](net::batch& b) { b.expires_unix_s = 1'000'000'000; });
    batch_fixture fixture(kept.path);
    fixture.service->begin();
    REQUIRE(fixture.run_until_ended(id));
    const auto ended = fixture.show(id);
    CHECK(ended.status == net::batch_status::expired);
    CHECK(fixture.engine().submitted().empty());
    CHECK(answers_in(fixture.content(ended.output_file_id)).size() +
              answers_in(fixture.content(ended.error_file_id)).size() ==
          30);
    CHECK(ended.completed + ended.failed == 30);
  }
  SECTION("it was") {
    std::string description;
    {
      batch_fixture fixture(kept.path);
      fixture.service->begin();
      description = kept.text(id + ".batch");
      REQUIRE(fixture.run_until_ended(id));
    }
    // The server was killed after it had published the files and before it recorded that.
    kept.write(id + ".batch", description);
    change_description(kept, id, [](net::batch& b) {
      b.expires_unix_s = 1'000'000'000;
      b.reach(net::batch_status::finalizing);
    });
    batch_fixture fixture(kept.path);
    const auto bytes = fixture.service->files().held_bytes();
    CHECK(fixture.service->files().list("").size() == 1); // the output files may still grow
    fixture.service->begin();
    REQUIRE(fixture.run_until_ended(id));
    check_complete(fixture, id, 30);
    CHECK(fixture.service->files().list("").size() == 3);
    CHECK(fixture.service->files().held_bytes() == bytes);
    CHECK(fixture.engine().submitted().empty());
  }
}

TEST_CASE("Files that a batch goes on with count and stay, others that nobody published go") {
  batch_scratch kept;
  const auto id = leave_half(kept.path, 30);
  const auto record = net::read_description(kept.text(id + ".batch"));
  REQUIRE(record.ok());
  const auto output = record.value().output_under_way, errors = record.value().errors_under_way;
  const auto orphan = net::make_id("file-");
  kept.write(orphan, "lost");
  kept.write(orphan + ".json", "    ");
  const auto size = [&](const std::string& name) {
    return static_cast<std::int64_t>(fs::file_size(kept.path / name));
  };
  const auto wanted = size(record.value().input_file_id) + size(output) + size(errors);
  {
    batch_fixture fixture(kept.path);
    CHECK(fixture.service->files().held_bytes() == wanted);
    CHECK_FALSE(fs::exists(kept.path / orphan));
    CHECK_FALSE(fs::exists(kept.path / (orphan + ".json")));
    CHECK(fixture.service->files().list("").size() == 1); // the output files are not published
  }
  // The output files stay within the limit, also with what is still written to them.
  batch_fixture fixture(kept.path,
                        [&](config::options& o) { o.batches.max_folder_bytes = wanted; });
  fixture.service->begin();
  REQUIRE(fixture.run_until_ended(id));
  CHECK(fixture.show(id).status == net::batch_status::failed);
  CHECK(fixture.show(id).faults.front().code == "storage_full");
  CHECK(fixture.service->files().held_bytes() == wanted);
  CHECK(fixture.show(id).output_file_id == output);
}

TEST_CASE("An answer that is not whole is cut off, with all behind it") {
  batch_scratch kept;
  const auto id = leave_half(kept.path, 30);
  const auto record = net::read_description(kept.text(id + ".batch"));
  REQUIRE(record.ok());
  const auto output = record.value().output_under_way;
  auto text = kept.text(output);
  SECTION("the last line has no end") {
    text += R"({"id":"a","custom_id":"r29")";
  }
  SECTION("the last line is whole but for its end") {
    text.pop_back();
  }
  SECTION("zeros, as a power failure leaves") {
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(text.find('\n') + 10), text.end(), '\0');
    text += '\n';
  }
  SECTION("the file is empty") {
    text.clear();
  }
  kept.write(output, text);
  batch_fixture fixture(kept.path);
  fixture.service->begin();
  REQUIRE(fixture.run_until_ended(id));
  check_complete(fixture, id, 30);
}

TEST_CASE("A batch whose files cannot be read now is left for the next start, with its input") {
  batch_scratch kept;
  const auto id = leave_half(kept.path, 30);
  const auto record = net::read_description(kept.text(id + ".batch"));
  REQUIRE(record.ok());
  const auto output = kept.path / record.value().output_under_way;
  fs::rename(output, kept.path / "aside");
  fs::create_directory(output);
  {
    batch_fixture fixture(kept.path);
    fixture.service->begin();
    fixture.run_posted();
    CHECK(fixture.show(id).status == net::batch_status::in_progress);
    CHECK(fixture.engine().submitted().empty());
    CHECK_FALSE(fixture.service->files().erase(record.value().input_file_id, "").ok());
  }
  fs::remove(output);
  fs::rename(kept.path / "aside", output);
  batch_fixture fixture(kept.path);
  fixture.service->begin();
  REQUIRE(fixture.run_until_ended(id));
  check_complete(fixture, id, 30);
}

TEST_CASE("Files under way that somebody removed are written anew") {
  batch_scratch kept;
  const auto id = leave_half(kept.path, 30);
  const auto record = net::read_description(kept.text(id + ".batch"));
  REQUIRE(record.ok());
  fs::remove(kept.path / record.value().output_under_way);
  fs::remove(kept.path / (record.value().errors_under_way + ".json"));
  batch_fixture fixture(kept.path);
  fixture.service->begin();
  REQUIRE(fixture.run_until_ended(id));
  check_complete(fixture, id, 30);
}

TEST_CASE("A batch is not made when its description cannot be written") {
  batch_scratch kept;
  batch_fixture fixture(kept.path);
  const auto file = fixture.upload(restart_lines(3));
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 100;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto created = fixture.create(file);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  REQUIRE_FALSE(created.ok());
  CHECK(created.code().code == decltype(created.code().code)(net::errc::storage_full));
  CHECK(contains(created.code().message, "`batches.folder`"));
  fixture.run_posted();
  CHECK(fixture.service->batches().list("").empty());
  CHECK(fixture.engine().submitted().empty());
  CHECK(files_that_end_with(kept.path, ".batch") == 0);
  CHECK(files_that_end_with(kept.path, ".new") == 0);
  CHECK(fixture.service->files().erase(file, "").ok());
}

TEST_CASE("A batch under way has room for its next description") {
  batch_scratch kept;
  batch_fixture fixture(kept.path);
  const auto id = fixture.start(10);
  for (int n = 0; n < 3; ++n) {
    REQUIRE(fs::exists(kept.path / (id + ".batch.new")));
    CHECK(fs::file_size(kept.path / (id + ".batch.new")) >
          fs::file_size(kept.path / (id + ".batch")) + 100);
    fixture.run_some(1);
  }
  REQUIRE(fixture.run_until_ended(id));
  CHECK_FALSE(fs::exists(kept.path / (id + ".batch.new")));
  CHECK((fs::status(kept.path / (id + ".batch")).permissions() & fs::perms::mask) ==
        (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("A second server over the folder leaves the first one's batches alone") {
  batch_scratch kept;
  batch_fixture first(kept.path);
  const auto id = first.start(20);
  REQUIRE(first.run([&] { return first.show(id).completed >= 4; }));
  const auto before = kept.text(id + ".batch");
  {
    batch_fixture second(kept.path);
    CHECK(second.service->batches().list("").empty());
    second.service->begin();
    const auto own = second.start(2);
    REQUIRE(second.run_until_ended(own));
    CHECK_FALSE(fs::exists(kept.path / (own + ".batch")));
  }
  CHECK(kept.text(id + ".batch") == before);
  REQUIRE(first.run_until_ended(id));
  check_complete(first, id, 20);
}

TEST_CASE("A damaged description is left where it is, and so is the file that it names") {
  batch_scratch kept;
  const auto damaged = leave_half(kept.path, 10);
  std::string whole;
  {
    batch_fixture fixture(kept.path);
    whole = fixture.start(3);
  }
  const auto record = net::read_description(kept.text(damaged + ".batch"));
  REQUIRE(record.ok());
  auto text = kept.text(damaged + ".batch");
  text.replace(text.find("\"total\""), 7, "\"totol\"");
  kept.write(damaged + ".batch", text);
  kept.write("batch_other.batch", kept.text(whole + ".batch")); // describes another batch
  kept.write("batch_large.batch", std::string(net::max_batch_description_bytes + 1, ' '));
  fs::create_directory(kept.path / "batch_folder.batch");
  REQUIRE(::mkfifo((kept.path / "batch_pipe.batch").c_str(), 0600) == 0);
  fs::create_symlink("/dev/zero", kept.path / "batch_link.batch");
  const auto n_files = files_that_end_with(kept.path, ".batch");
  const auto unnamed = net::make_id("file-");
  kept.write(unnamed, "perhaps of a batch that cannot be read");
  {
    batch_fixture fixture(kept.path);
    CHECK(fixture.service->batches().list("").size() == 1);
    fixture.service->begin();
    REQUIRE(fixture.run_until_ended(whole));
    check_complete(fixture, whole, 3);
  }
  CHECK(kept.text(damaged + ".batch") == text);
  CHECK(fs::exists(kept.path / unnamed));
  CHECK(files_that_end_with(kept.path, ".batch") == n_files);
  // When a server starts, it deletes files to which no batch refers, but not while there are
  // descriptions of batches that cannot be read at all. These descriptions are removed here. Then
  // the next server deletes such files, but keeps those of the batch `damaged`, whose description
  // lacks only a field.
  for (const auto* name : {"batch_large", "batch_folder", "batch_pipe", "batch_link"})
    fs::remove(kept.path / (std::string(name) + ".batch"));
  { batch_fixture again(kept.path); }
  CHECK_FALSE(fs::exists(kept.path / unnamed));
  CHECK(fs::exists(kept.path / record.value().output_under_way));
  // The batch goes on once its description is repaired.
  kept.write(damaged + ".batch", net::describe_batch(record.value()));
  batch_fixture fixture(kept.path);
  fixture.service->begin();
  REQUIRE(fixture.run_until_ended(damaged));
  check_complete(fixture, damaged, 10);
}
