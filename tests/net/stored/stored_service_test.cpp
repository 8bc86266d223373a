// Stored responses from beginning to end: what readers get, who may cancel or delete what, and what
// is left on disk.
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/net/stored/service_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;
using reason = actors::errc;

namespace {

script endless_pieces() {
  auto s = pieces(5);
  s.repeat = 1'000'000;
  s.step = 500us;
  return s;
}

/// Runs a test in memory and with a folder.
template <class Test>
void in_both(Test test) {
  SECTION("in memory") {
    service_fixture fixture(kept_in(nullptr));
    test(fixture);
  }
  SECTION("in a folder") {
    const scratch_folder folder;
    service_fixture fixture(kept_in(&folder));
    test(fixture);
  }
}

void play(service_fixture& fixture, script s) {
  fixture.engine.set_script([s](const actors::request&) { return s; });
}

} // namespace

TEST_CASE("A response is read while it runs and when it is over") {
  in_both([](service_fixture& fixture) {
    play(fixture, pieces(10));
    listener first(fixture.begin(fixture.head("r1")));
    REQUIRE(first.wait_last());
    first.forget();
    const auto received = first.records();
    CHECK(received.size() == 12); // started, the pieces, finish
    CHECK(fixture.records("r1") == received);
    REQUIRE(fixture.wait_over("r1"));
    listener later(fixture.follow("r1"));
    REQUIRE(later.wait_last());
    CHECK(later.records() == received);
    CHECK(says_nothing(later.events().front()));
    CHECK(later.count() == received.size() + 1);
    const auto submitted = fixture.engine.submitted();
    REQUIRE(submitted.size() == 1);
    CHECK(submitted.front().sampling.seed.has_value());
    CHECK(fixture.service->find("r1", "")->head->seed == submitted.front().sampling.seed);
  });
}

TEST_CASE("Each reader gets each event once and in order, whenever it comes, pauses and leaves") {
  in_both([](service_fixture& fixture) {
    std::mt19937 random(47);
    const auto below = [&](unsigned n) { return random() % n; };
    for (int round = 0; round < 12; ++round) {
      const auto id = "r" + std::to_string(round);
      play(fixture, pieces(20 + below(300), std::chrono::microseconds(below(100))));
      std::vector<std::unique_ptr<listener>> readers;
      readers.push_back(std::make_unique<listener>(fixture.begin(fixture.head(id, "", true))));
      std::vector<std::unique_ptr<listener>> gone;
      for (int action = 0; action < 60; ++action) {
        auto& one = readers[below(static_cast<unsigned>(readers.size()))];
        switch (below(6)) {
        case 0:
          // Nothing is found before the response begins.
          if (auto found = fixture.service->follow(id, ""))
            readers.push_back(std::make_unique<listener>(std::move(found->source)));
          break;
        case 1:
          one->source().pause();
          break;
        case 2:
          one->source().resume();
          break;
        case 3:
          one->take();
          break;
        case 4:
          if (readers.size() > 1 && below(4) == 0) {
            one->leave();
            gone.push_back(std::move(one));
            readers.erase(std::find(readers.begin(), readers.end(), nullptr));
          }
          break;
        default:
          std::this_thread::sleep_for(std::chrono::microseconds(below(300)));
        }
      }
      std::vector<std::string> whole;
      for (auto& one : readers) {
        one->source().resume();
        REQUIRE(one->wait_last());
        if (whole.empty()) whole = one->records();
        CHECK(one->records() == whole);
        CHECK_FALSE(one->went_on_after_last());
      }
      CHECK(fixture.records(id) == whole);
      for (const auto& one : gone) {
        const auto part = one->records();
        REQUIRE(part.size() <= whole.size());
        CHECK(std::equal(part.begin(), part.end(), whole.begin()));
      }
    }
  });
}

TEST_CASE("A reader that takes nothing is given 64 events, and goes on when it takes some") {
  in_both([](service_fixture& fixture) {
    play(fixture, pieces(300));
    listener slow(fixture.begin(fixture.head("r1")), false);
    REQUIRE(fixture.wait_over("r1"));
    CHECK(slow.count() == 64);
    slow.source().taken(10);
    CHECK(slow.count() == 74);
    slow.source().pause();
    slow.source().taken(1000);
    CHECK(slow.count() == 74);
    slow.source().resume();
    CHECK(slow.wait_last(0ms));
    CHECK(slow.records() == fixture.records("r1"));
  });
}

TEST_CASE("What somebody reads is not displaced, and what nobody reads any more is") {
  auto options = kept_in(nullptr);
  options.max_memory_bytes = 64 * 1024;
  service_fixture fixture(options);
  play(fixture, pieces(200));
  const auto add = [&](const std::string& id) {
    listener one(fixture.begin(fixture.head(id)));
    REQUIRE(one.wait_last());
    REQUIRE(fixture.wait_over(id));
    one.forget();
  };
  add("first");
  auto reader = std::make_unique<listener>(fixture.follow("first"), false);
  for (int i = 0; i < 10; ++i)
    add("r" + std::to_string(i));
  CHECK_FALSE(fixture.service->find("r0", "").has_value());
  CHECK(fixture.service->find("first", "").has_value());
  CHECK(fixture.service->bytes() <= options.max_memory_bytes);
  // While readers read all that is over, nothing new has room.
  std::vector<std::unique_ptr<listener>> others;
  for (int i = 0; i < 10; ++i)
    if (auto found = fixture.service->follow("r" + std::to_string(i), ""))
      others.push_back(std::make_unique<listener>(std::move(found->source), false));
  REQUIRE_FALSE(others.empty());
  auto refused = fixture.head("large");
  refused.asked = value_object{{"body", std::string(30'000, 'x')}};
  CHECK_FALSE(fixture.service->begin(refused, fixture.request()).ok());
  others.clear();
  reader.reset();
  CHECK(fixture.service->begin(refused, fixture.request()).ok());
  CHECK_FALSE(fixture.service->find("first", "").has_value());
}

TEST_CASE("Readers that rest keep no more in memory than their tenant's part of it") {
  const scratch_folder folder;
  auto options = kept_in(&folder);
  options.max_memory_bytes = 64 * 1024;
  service_fixture fixture(options);
  fixture.tenants = 2;
  play(fixture, pieces(300));
  std::vector<std::unique_ptr<listener>> readers;
  const auto read = [&](const std::string& id, const std::string& tenant) {
    readers.push_back(std::make_unique<listener>(fixture.begin(fixture.head(id, tenant)), false));
    readers.back()->source().pause();
    REQUIRE(fixture.wait_over(id, tenant));
    REQUIRE(service_fixture::eventually(
        [&] { return std::filesystem::exists(folder.path() / (id + ".response")); }));
  };
  read("other", "bob");
  read("r0", "ann");
  for (int i = 1; i < 4; ++i)
    read("r" + std::to_string(i), "ann");
  CHECK(readers[1]->error() == reason::slow_reader);
  CHECK(fixture.records("r0", "ann").size() == 302);
  CHECK_FALSE(readers.back()->error().has_value());
  CHECK_FALSE(readers.front()->error().has_value()); // the reader of another tenant
  for (auto& one : {&readers.front(), &readers.back()}) {
    (*one)->source().resume();
    (*one)->source().taken(1000);
    CHECK((*one)->wait_last(0ms));
  }
}

TEST_CASE("A response has at most 64 readers, and none once its time is over") {
  auto options = kept_in(nullptr);
  options.keep = 4s; // long enough for 64 readers, also on a busy machine
  service_fixture fixture(options);
  play(fixture, pieces(100));
  listener first(fixture.begin(fixture.head("r1")), false);
  std::vector<std::unique_ptr<listener>> readers;
  for (int i = 0; i < 64; ++i)
    readers.push_back(std::make_unique<listener>(fixture.follow("r1"), false));
  CHECK(readers.back()->error() == reason::queue_full);
  CHECK_FALSE(readers[62]->error().has_value());
  CHECK(service_fixture::eventually([&] { return !fixture.service->find("r1", "").has_value(); }));
  first.source().taken(1000);
  CHECK(service_fixture::eventually([&] { return first.error() == reason::not_stored; }));
}

TEST_CASE("Choices are sent in turns, in whatever order steps report them") {
  in_both([](service_fixture& fixture) {
    auto alternating = pieces(10);
    alternating.alternates = true;
    play(fixture, alternating);
    auto head = fixture.head("r1");
    head.n_choices = 3;
    listener reader(fixture.begin(std::move(head)));
    REQUIRE(reader.wait_last());
    const auto in_turns = [](const std::vector<actors::event>& events, std::size_t begin) {
      REQUIRE(events.size() == begin + 3 * 11);
      for (std::size_t i = begin; i < events.size(); ++i) {
        CHECK(events[i].choice == static_cast<std::int32_t>((i - begin) % 3));
        CHECK(events[i].last == (i + 1 == events.size()));
      }
    };
    in_turns(reader.events(), 1);
    CHECK(fixture.service->find("r1", "")->head->n_choices == 3);
    REQUIRE(fixture.wait_over("r1"));
    listener later(fixture.follow("r1"), false);
    CHECK(later.count() == 33 + 2); // all events have room
    in_turns(later.events(), 2);
    // A sampled token is recorded at once, even if its choice is ahead of its turn.
    CHECK(read_record(fixture.records("r1")[1])->choice == 2);
  });
}

TEST_CASE("A reader of several choices that takes nothing is given 64 events") {
  in_both([](service_fixture& fixture) {
    auto alternating = pieces(100);
    alternating.alternates = true;
    play(fixture, alternating);
    auto head = fixture.head("r1");
    head.n_choices = 2;
    listener slow(fixture.begin(std::move(head)), false);
    REQUIRE(fixture.wait_over("r1"));
    CHECK(slow.count() == 64);
    slow.source().taken(1000);
    CHECK(slow.count() == 1 + 2 * 101);
  });
}

TEST_CASE("Readers that have their last event keep nothing") {
  in_both([](service_fixture& fixture) {
    play(fixture, pieces(10));
    std::vector<std::weak_ptr<event_source>> sources;
    {
      listener first(fixture.begin(fixture.head("r1")));
      listener only_begin(fixture.begin(fixture.head("r2", "", true), true));
      REQUIRE(first.wait_last());
      REQUIRE(only_begin.wait_last());
      CHECK(only_begin.count() == 1);
      REQUIRE(fixture.wait_over("r1"));
      REQUIRE(fixture.wait_over("r2"));
      listener later(fixture.follow("r1"));
      REQUIRE(later.wait_last());
      for (auto* one : {&first, &only_begin, &later}) {
        sources.push_back(one->watch());
        one->forget();
      }
    }
    for (const auto& one : sources)
      CHECK(service_fixture::eventually([&] { return one.expired(); }));
    if (fixture.options.folder.empty()) return;
    // An ended response with a file is not kept in memory: each find() reads the file.
    CHECK(service_fixture::eventually([&] {
      return fixture.service->find("r1", "")->bytes != fixture.service->find("r1", "")->bytes;
    }));
    // Readers at the same time share what was read.
    auto a = fixture.follow("r1"), b = fixture.follow("r1");
    listener one(a), other(b);
    CHECK(fixture.service->find("r1", "")->bytes != nullptr);
    CHECK(one.wait_last());
    CHECK(other.wait_last());
  });
}

TEST_CASE("A reader that starts after the end, the deletion or the hand-over gets a notice") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  SECTION("after the end") {
    play(fixture, pieces(10, 2ms));
    listener first(fixture.begin(fixture.head("r1")));
    REQUIRE(first.wait_events(1));
    auto late = fixture.follow("r1");
    REQUIRE(first.wait_last());
    first.forget();
    REQUIRE(service_fixture::eventually([&] {
      return fixture.service->find("r1", "")->bytes != fixture.service->find("r1", "")->bytes;
    }));
    listener reader(late);
    CHECK(reader.wait_last());
    CHECK(reader.records() == first.records());
  }
  SECTION("after the deletion") {
    play(fixture, endless_pieces());
    listener first(fixture.begin(fixture.head("r1")));
    REQUIRE(first.wait_events(3));
    auto late = fixture.follow("r1");
    CHECK(fixture.service->erase("r1", ""));
    listener reader(late);
    CHECK(reader.wait_last());
    CHECK(reader.error() == reason::cancelled);
    CHECK(first.wait_last());
    CHECK(first.error() == reason::cancelled);
  }
  SECTION("after the hand-over") {
    play(fixture, endless_pieces());
    listener first(fixture.begin(fixture.head("r1", "", true)));
    REQUIRE(first.wait_events(3));
    auto late = fixture.follow("r1");
    fixture.service->hand_over();
    first.leave();
    CHECK(fixture.engine.wait_cancelled(1));
    listener reader(late);
    CHECK(reader.wait_last());
    CHECK(reader.error() == reason::interrupted);
  }
}

TEST_CASE("Whoever leaves cancels, but for the background, other readers and grace") {
  config::response_options options;
  SECTION("at once") {
    service_fixture fixture(options);
    play(fixture, endless_pieces());
    listener first(fixture.begin(fixture.head("r1")));
    REQUIRE(first.wait_events(2));
    auto second = std::make_unique<listener>(fixture.follow("r1"));
    first.leave();
    CHECK_FALSE(fixture.engine.wait_cancelled(1, 50ms));
    second->leave();
    CHECK(fixture.engine.wait_cancelled(1));
    REQUIRE(fixture.wait_over("r1"));
    CHECK(read_record(fixture.records("r1").back())->error->code == reason::cancelled);
  }
  SECTION("before the engine has it") {
    service_fixture fixture(options);
    for (int i = 0; i < 50; ++i) {
      listener first(fixture.begin(fixture.head("r" + std::to_string(i))));
      first.leave();
    }
    for (int i = 0; i < 50; ++i)
      CHECK(fixture.wait_over("r" + std::to_string(i)));
    CHECK(service_fixture::eventually([&] { return fixture.engine.running() == 0; }));
  }
  SECTION("of the background") {
    service_fixture fixture(options);
    play(fixture, pieces(50, 1ms));
    listener first(fixture.begin(fixture.head("r1", "", true)));
    first.leave();
    REQUIRE(fixture.wait_over("r1"));
    CHECK(fixture.records("r1").size() == 52);
  }
  SECTION("in grace") {
    options.grace = 150ms;
    service_fixture fixture(options);
    play(fixture, endless_pieces());
    listener first(fixture.begin(fixture.head("r1")));
    REQUIRE(first.wait_events(2));
    first.leave();
    std::this_thread::sleep_for(50ms);
    listener again(fixture.follow("r1"));
    CHECK_FALSE(fixture.engine.wait_cancelled(1, 250ms)); // the reader came back in time
    again.leave();
    CHECK(fixture.engine.wait_cancelled(1));
    CHECK(fixture.wait_over("r1"));
  }
}

TEST_CASE("A response is cancelled and erased at each stage") {
  in_both([](service_fixture& fixture) {
    auto& service = *fixture.service;
    CHECK_FALSE(service.cancel("r0", ""));
    CHECK_FALSE(service.erase("r0", ""));
    { // asked for, and not begun
      const auto never = fixture.begin(fixture.head("r0"));
      CHECK_FALSE(service.cancel("r0", ""));
    }
    play(fixture, endless_pieces());
    for (const int wait_for : {0, 1, 2, 10}) { // events to wait for
      const auto id = "c" + std::to_string(wait_for);
      listener reader(fixture.begin(fixture.head(id)));
      REQUIRE(reader.wait_events(static_cast<std::size_t>(wait_for)));
      CHECK(service.cancel(id, ""));
      CHECK(fixture.is_over(id));
      REQUIRE(reader.wait_last());
      CHECK(reader.error() == reason::cancelled);
      const auto records = fixture.records(id);
      CHECK(records == reader.records());
      CHECK(service.cancel(id, "")); // cancelled twice
      CHECK(fixture.records(id) == records);
      CHECK(service.erase(id, ""));
      CHECK_FALSE(service.find(id, "").has_value());
      CHECK_FALSE(service.follow(id, "").has_value());
      CHECK_FALSE(service.erase(id, ""));

      const auto gone = "e" + std::to_string(wait_for);
      listener other(fixture.begin(fixture.head(gone)));
      REQUIRE(other.wait_events(static_cast<std::size_t>(wait_for)));
      CHECK(service.erase(gone, ""));
      REQUIRE(other.wait_last());
      CHECK(other.error() == reason::cancelled);
      CHECK_FALSE(service.find(gone, "").has_value());
    }
    CHECK(service_fixture::eventually([&] { return fixture.engine.running() == 0; }));
    CHECK(service.bytes() == 0);
    fixture.restart();
    CHECK(fixture.service->bytes() == 0);
  });
}

TEST_CASE("What the engine refuses at once is stored of the background alone") {
  in_both([](service_fixture& fixture) {
    script refusing;
    refusing.refusal = actors::request_error{reason::queue_full, "full", ""};
    play(fixture, refusing);
    listener first(fixture.begin(fixture.head("r1")));
    REQUIRE(first.wait_last());
    CHECK(first.error() == reason::queue_full);
    CHECK(first.count() == 1); // the error alone, so that HTTP answers with its status
    CHECK_FALSE(fixture.service->find("r1", "").has_value());
    CHECK(fixture.service->bytes() == 0);
    listener background(fixture.begin(fixture.head("r2", "", true)));
    REQUIRE(background.wait_last());
    CHECK(background.count() == 2); // stored, then failed
    REQUIRE(fixture.wait_over("r2"));
    CHECK(fixture.records("r2") == background.records());
    fixture.engine.set_state(actors::engine_state::draining);
    listener late(fixture.begin(fixture.head("r3")));
    REQUIRE(late.wait_last());
    CHECK(late.error() == reason::shutting_down);
    CHECK_FALSE(fixture.service->find("r3", "").has_value());
  });
}

TEST_CASE("A disk that takes nothing refuses new responses and hurts no other") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  play(fixture, pieces(300, 1ms));
  listener running(fixture.begin(fixture.head("r1")));
  REQUIRE(running.wait_events(3));
  fixture.files.full = true;
  REQUIRE(running.wait_events(running.count() + 5));
  for (const bool background : {false, true}) {
    listener refused(fixture.begin(fixture.head("no", "", background), background));
    REQUIRE(refused.wait_last());
    CHECK(refused.error() == reason::not_stored);
    CHECK(refused.count() == 1);
    CHECK_FALSE(fixture.service->find("no", "").has_value());
  }
  CHECK(fixture.engine.submitted().size() == 1); // the refused responses were not computed
  CHECK(fixture.service->write_failures() > 0);
  REQUIRE(running.wait_last());
  CHECK(running.records().size() == 302);
  CHECK(fixture.records("r1") == running.records());
  fixture.files.full = false;
  listener after(fixture.begin(fixture.head("r2")));
  REQUIRE(after.wait_last());
  REQUIRE(fixture.wait_over("r2"));
  CHECK(service_fixture::eventually(
      [&] { return std::filesystem::exists(folder.path() / "r1.response"); }));
  running.forget();
  after.forget();
  fixture.restart();
  CHECK(fixture.is_over("r1"));
  CHECK(fixture.records("r1") == running.records());
  CHECK(fixture.records("r2") == after.records());
}

TEST_CASE(
    "What the journal did not take comes once, also when the journal is written anew between") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  play(fixture, endless_pieces());
  listener running(fixture.begin(fixture.head("r1")));
  listener other(fixture.begin(fixture.head("r2", "", true), true));
  REQUIRE(other.wait_last());
  other.forget();
  REQUIRE(running.wait_events(3));
  fixture.files.journal_full = true;
  const auto failures = fixture.service->write_failures();
  REQUIRE(running.wait_events(running.count() + 5));
  REQUIRE(fixture.service->write_failures() > failures);
  // An ended response leaves dead bytes, so that the journal is written anew, as another file.
  CHECK(fixture.service->cancel("r2", ""));
  REQUIRE(service_fixture::eventually([&] {
    const auto before = fixture.service->write_failures();
    return running.wait_events(running.count() + 5) && fixture.service->write_failures() == before;
  }));
  fixture.files.journal_full = false;
  running.forget();
  play(fixture, pieces(0));
  const auto before = running.records();
  fixture.restart();
  REQUIRE(fixture.engine.wait_submitted(3));
  const auto made = fixture.engine.submitted().back().made;
  REQUIRE(made.size() == 1);
  const auto& tokens = made.front().tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    REQUIRE(tokens[i] == 100 + static_cast<std::int32_t>(i)); // no token is missing or doubled
  CHECK(tokens.size() + 1 >= before.size());
}

TEST_CASE("A response goes on only with the model that has begun it, also without a token") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  auto begun = endless_pieces();
  begun.step = 1h; // the start event is sent, but no token follows
  play(fixture, begun);
  listener background(fixture.begin(fixture.head("r1", "", true)));
  REQUIRE(background.wait_events(2));
  background.forget();
  fixture.restart();
  REQUIRE(fixture.engine.wait_submitted(2));
  const auto again = fixture.engine.submitted().back();
  CHECK(again.continues == "the scripted model");
  REQUIRE(again.made.size() == 1);
  CHECK(again.made.front().tokens.empty());
}

TEST_CASE("What was deleted is removed from the disk, also where the first try fails") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  listener first(fixture.begin(fixture.head("r1")));
  REQUIRE(first.wait_last());
  first.forget();
  REQUIRE(service_fixture::eventually(
      [&] { return std::filesystem::exists(folder.path() / "r1.response"); }));
  fixture.files.keeps = true;
  CHECK(fixture.service->erase("r1", ""));
  CHECK_FALSE(fixture.service->find("r1", "").has_value());
  CHECK(fixture.service->write_failures() == 1);
  fixture.files.keeps = false;
  CHECK(service_fixture::eventually(
      [&] { return !std::filesystem::exists(folder.path() / "r1.response"); }));
}

TEST_CASE("What was deleted is not there again although its file could not be finished") {
  const scratch_folder folder;
  auto options = kept_in(&folder);
  options.sync = "finished";
  service_fixture fixture(options);
  fixture.files.unsynced = true;
  listener first(fixture.begin(fixture.head("r1")));
  REQUIRE(first.wait_last());
  first.forget();
  const auto has_file = [&] { return std::filesystem::exists(folder.path() / "r1.response"); };
  REQUIRE(service_fixture::eventually(has_file));
  REQUIRE(service_fixture::eventually([&] { return fixture.service->write_failures() > 0; }));
  CHECK(fixture.is_over("r1"));
  CHECK(fixture.service->erase("r1", ""));
  CHECK_FALSE(has_file());
  fixture.files.unsynced = false;
  fixture.restart();
  CHECK_FALSE(fixture.service->find("r1", "").has_value());
}

TEST_CASE("Nobody is shown what is not written yet") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  play(fixture, pieces(20, 2ms));
  listener first(fixture.begin(fixture.head("r1")));
  REQUIRE(first.wait_events(2));
  fixture.files.stands = true;
  std::this_thread::sleep_for(20ms);
  const auto received = first.count();
  REQUIRE(service_fixture::eventually([&] { return fixture.engine.running() == 0; }));
  CHECK(first.count() == received);
  fixture.files.lets_one = true; // one write goes on; the rest and the end still wait
  std::this_thread::sleep_for(50ms);
  CHECK(fixture.service->find("r1", "")->running);
  CHECK(fixture.records("r1") == first.records());
  fixture.files.stands = false;
  REQUIRE(first.wait_last());
  CHECK(fixture.wait_over("r1"));
}

TEST_CASE("A response whose records have no end ends with an error") {
  in_both([](service_fixture& fixture) {
    actors::event ev;
    ev.started = true;
    fixture.service->add_finished(fixture.head("r1"), {write_record(ev), "damaged"});
    listener reader(fixture.follow("r1"));
    REQUIRE(reader.wait_last());
    CHECK(reader.error() == reason::executor_failed);
    CHECK(reader.records().size() == 2);
  });
}

TEST_CASE("Tenants share nothing but the number of parts") {
  in_both([](service_fixture& fixture) {
    fixture.options.max_memory_bytes = fixture.options.max_folder_bytes = 64 << 10;
    fixture.tenants = 2;
    fixture.restart();
    auto& service = *fixture.service;
    play(fixture, pieces(5));
    const auto run = [&](const std::string& id, const std::string& tenant) {
      listener one(fixture.begin(fixture.head(id, tenant)));
      REQUIRE(one.wait_last());
      REQUIRE(fixture.wait_over(id, tenant));
    };
    run("a0", "ann");
    CHECK_FALSE(service.find("a0", "bob").has_value());
    CHECK_FALSE(service.find("a0", "").has_value());
    CHECK_FALSE(service.follow("a0", "bob").has_value());
    CHECK_FALSE(service.cancel("a0", "bob"));
    CHECK_FALSE(service.erase("a0", "bob"));
    for (int i = 0; i < 60; ++i)
      run("b" + std::to_string(i), "bob");
    CHECK(service.find("a0", "ann").has_value());
    CHECK_FALSE(service.find("b0", "bob").has_value()); // the oldest were removed
    CHECK(service.find("b59", "bob").has_value());
    CHECK(service.bytes() <= 64 << 10);
    // Running responses are never removed: they take room of their own tenant alone.
    play(fixture, endless_pieces());
    auto big = fixture.head("b60", "bob");
    big.asked = value_object{{"body", value_object{{"input", std::string(30 << 10, 'x')}}}};
    listener fills(fixture.begin(std::move(big)));
    REQUIRE(fills.wait_events(2));
    auto next = fixture.head("b61", "bob");
    next.asked = value_object{{"body", value_object{{"input", std::string(8 << 10, 'x')}}}};
    const auto submitted = fixture.engine.submitted().size();
    const auto refused = service.begin(next, service_fixture::request());
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.code().code == std::variant<net::errc, actors::errc>(net::errc::storage_full));
    CHECK(fixture.engine.submitted().size() == submitted);
    next.tenant = "ann";
    CHECK(service.begin(std::move(next), service_fixture::request()).ok());
    CHECK(service.find("a0", "ann").has_value());
    // The response grows beyond all that its tenant may have.
    REQUIRE(fills.wait_last());
    CHECK(fills.error() == reason::too_large);
    CHECK(service.find("a0", "ann").has_value());
  });
}

TEST_CASE("Those that begin at the same time do not share one room") {
  config::response_options options;
  options.max_memory_bytes = 64 << 10;
  service_fixture fixture(options);
  play(fixture, endless_pieces());
  const auto big = [&](const std::string& id) {
    auto h = fixture.head(id);
    h.asked = value_object{{"body", value_object{{"input", std::string(40 << 10, 'x')}}}};
    return h;
  };
  auto a = fixture.begin(big("a")), b = fixture.begin(big("b"));
  listener first(a), second(b);
  REQUIRE(second.wait_last());
  CHECK(second.error() == reason::not_stored);
  CHECK(first.wait_events(2));
}

TEST_CASE("Responses expire, also those of batches") {
  in_both([](service_fixture& fixture) {
    fixture.options.keep = 2s;
    fixture.restart();
    auto old = fixture.head("b1");
    old.created_unix_s -= 1;
    fixture.service->add_finished(std::move(old), {write_record([] {
                                    actors::event ev;
                                    ev.finish = actors::finish_reason::stop;
                                    ev.last = true;
                                    return ev;
                                  }())});
    CHECK(fixture.is_over("b1"));
    CHECK(service_fixture::eventually([&] { return !fixture.service->find("b1", ""); }, 5s));
    listener one(fixture.begin(fixture.head("r1")));
    REQUIRE(one.wait_last());
    CHECK(service_fixture::eventually([&] { return !fixture.service->find("r1", ""); }, 5s));
    CHECK(fixture.service->bytes() == 0);
  });
}

TEST_CASE("A file that is damaged is kept no longer than one that is not") {
  const scratch_folder folder;
  auto options = kept_in(&folder);
  options.keep = std::chrono::hours(1);
  service_fixture fixture(options);
  play(fixture, pieces(5));
  for (const auto* id : {"r1", "r2", "r3"}) {
    listener one(fixture.begin(fixture.head(id)));
    REQUIRE(one.wait_last());
    REQUIRE(service_fixture::eventually(
        [&] { return std::filesystem::exists(folder.path() / (std::string(id) + ".response")); }));
  }
  fixture.service.reset();
  const auto file_of = [&](const char* id) {
    return folder.path() / (std::string(id) + ".response");
  };
  for (const auto* id : {"r1", "r2"}) {
    std::fstream file(file_of(id), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(60);
    file.write("XXXX", 4);
  }
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(file_of("r1"), now - std::chrono::hours(2));
  std::filesystem::last_write_time(file_of("r2"), now - std::chrono::minutes(50));
  fixture.open();
  CHECK_FALSE(std::filesystem::exists(file_of("r1")));
  CHECK(std::filesystem::exists(file_of("r2")));
  CHECK_FALSE(fixture.service->find("r2", "").has_value());
  CHECK(fixture.records("r3").size() == 7);
}

TEST_CASE("What runs goes on after a restart") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  play(fixture, endless_pieces());
  auto first = std::make_unique<listener>(fixture.begin(fixture.head("r1", "ann")));
  listener background(fixture.begin(fixture.head("r2", "ann", true), true));
  REQUIRE(background.wait_last());
  background.forget();
  REQUIRE(first->wait_events(5));
  fixture.service->hand_over();
  CHECK(fixture.engine.wait_cancelled(1)); // r2, which nobody reads
  first->leave();
  CHECK(fixture.engine.wait_cancelled(2)); // r1, whose reader has left
  first.reset();
  const auto seed = fixture.engine.submitted().front().sampling.seed;
  const auto before = fixture.engine.submitted().size();
  auto rest = pieces(10, 1ms);
  SECTION("at once") {}
  SECTION("when the queue has room") {
    script full;
    full.refusal = actors::request_error{reason::queue_full, "full", ""};
    play(fixture, full);
    fixture.restart();
    REQUIRE(fixture.engine.wait_submitted(before + 4)); // each response twice
    play(fixture, rest);
    REQUIRE(fixture.wait_over("r1", "ann"));
    REQUIRE(fixture.wait_over("r2", "ann"));
    CHECK_FALSE(read_record(fixture.records("r1", "ann").back())->error.has_value());
    CHECK_FALSE(read_record(fixture.records("r2", "ann").back())->error.has_value());
    return;
  }
  SECTION("when the model is there") {
    fixture.refuses_again = api_error{reason::not_ready, "loading", ""};
    fixture.restart();
    std::this_thread::sleep_for(50ms);
    CHECK(fixture.service->find("r1", "ann")->running);
    fixture.service.reset();
    fixture.refuses_again.reset();
  }
  SECTION("or ends where it cannot") {
    fixture.refuses_again = api_error{reason::unknown_model, "gone", ""};
    fixture.restart();
    REQUIRE(fixture.wait_over("r1", "ann"));
    CHECK(read_record(fixture.records("r1", "ann").back())->error->code == reason::model_changed);
    return;
  }
  play(fixture, rest);
  fixture.restart();
  REQUIRE(fixture.engine.wait_submitted(before + 2));
  listener reader(fixture.follow("r1", "ann"));
  REQUIRE(reader.wait_last());
  const auto records = reader.records();
  CHECK(records == fixture.records("r1", "ann"));
  int starts = 0;
  for (const auto& one : records)
    starts += read_record(one)->started ? 1 : 0;
  CHECK(starts == 1);
  int same = 0;
  const auto submitted = fixture.engine.submitted();
  for (auto one = submitted.begin() + static_cast<std::ptrdiff_t>(before); one != submitted.end();
       ++one) {
    CHECK(one->tenant == "ann");
    if (one->sampling.seed != seed) continue;
    ++same;
    REQUIRE(one->made.size() == 1);
    CHECK(one->made.front().tokens.size() >= 3); // at least the tokens that its reader had
    CHECK(one->made.front().tokens.front() == 100);
  }
  CHECK(same == 1);
}

TEST_CASE("What had ended before a stop is over after it, also while its model is loaded") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  const auto head = write_head(fixture.head("r1"));
  fixture.service.reset();
  actors::event begun, ended;
  begun.started = true;
  ended.finish = actors::finish_reason::stop;
  ended.last = true;
  {
    const auto files = open_folder(folder.path());
    begin(*files, "r1", head);
    REQUIRE_FALSE(add(*files, {{"r1", write_record(begun)}, {"r1", write_record(ended)}}));
  }
  fixture.engine.set_state(actors::engine_state::loading);
  fixture.open();
  CHECK(fixture.is_over("r1"));
  CHECK(service_fixture::eventually(
      [&] { return std::filesystem::exists(folder.path() / "r1.response"); }));
  listener reader(fixture.follow("r1"));
  CHECK(reader.wait_last());
}

TEST_CASE("What draws nothing goes on without what was made, and other responses with it") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  play(fixture, endless_pieces());
  auto first = std::make_unique<listener>(fixture.begin(fixture.head("r1")));
  REQUIRE(first->wait_events(1));
  fixture.service->hand_over();
  first.reset();
  CHECK(fixture.engine.wait_cancelled(1));
  fixture.max_tokens_again = GENERATE(0, 5);
  play(fixture, pieces(2));
  fixture.restart();
  REQUIRE(fixture.wait_over("r1"));
  const auto again = fixture.engine.submitted().back();
  CHECK(again.continues == "the scripted model");
  CHECK(again.made.size() == (fixture.max_tokens_again == 0 ? 0 : 1));
}

TEST_CASE("A response goes on twice and no more") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  play(fixture, endless_pieces());
  listener background(fixture.begin(fixture.head("r1", "", true), true));
  REQUIRE(background.wait_last());
  background.forget();
  for (std::size_t i = 1; i <= 2; ++i) {
    REQUIRE(fixture.engine.wait_submitted(i));
    fixture.restart(); // as after a crash, without hand_over()
    REQUIRE(fixture.service->find("r1", "")->running);
  }
  REQUIRE(fixture.engine.wait_submitted(3));
  fixture.restart();
  REQUIRE(fixture.wait_over("r1"));
  CHECK(read_record(fixture.records("r1").back())->error->code == reason::executor_failed);
}

TEST_CASE("What a client received before the end holds after it") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  play(fixture, endless_pieces());
  for (const auto* id : {"cancelled", "erased"}) {
    listener one(fixture.begin(fixture.head(id, "", true), true));
    REQUIRE(one.wait_last());
    one.forget();
  }
  REQUIRE(fixture.engine.wait_running(2));
  fixture.service->hand_over();
  CHECK(fixture.service->cancel("cancelled", ""));
  CHECK(fixture.service->erase("erased", ""));
  fixture.restart();
  REQUIRE(fixture.is_over("cancelled"));
  CHECK(read_record(fixture.records("cancelled").back())->error->code == reason::cancelled);
  CHECK_FALSE(fixture.service->find("erased", "").has_value());
}

TEST_CASE("What is asked for while the end comes holds after it") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  play(fixture, endless_pieces());
  for (const auto* id : {"canc", "eras", "goes"}) {
    listener one(fixture.begin(fixture.head(id, "", true), true));
    REQUIRE(one.wait_last());
    one.forget();
  }
  REQUIRE(fixture.engine.wait_running(3));
  fixture.files.stands = true; // the thread that writes is busy
  std::this_thread::sleep_for(50ms);
  std::vector<std::thread> others;
  others.emplace_back([&] { fixture.service->cancel("canc", ""); });
  others.emplace_back([&] { fixture.service->erase("eras", ""); });
  std::this_thread::sleep_for(50ms);
  others.emplace_back([&] { fixture.service->stop(); });
  std::this_thread::sleep_for(50ms);
  fixture.files.stands = false;
  for (auto& one : others)
    one.join();
  fixture.restart();
  REQUIRE(fixture.is_over("canc"));
  CHECK(read_record(fixture.records("canc").back())->error->code == reason::cancelled);
  CHECK_FALSE(fixture.service->find("eras", "").has_value());
  CHECK(fixture.service->find("goes", "")->running);
}

TEST_CASE("Sources and the engine outlive the service's end") {
  const scratch_folder folder;
  service_fixture fixture(kept_in(&folder));
  play(fixture, endless_pieces());
  auto running = std::make_unique<listener>(fixture.begin(fixture.head("r1")));
  REQUIRE(running->wait_events(3));
  const auto not_started = fixture.begin(fixture.head("r2"));
  const auto follower = fixture.follow("r1");
  fixture.service->stop();
  listener late(not_started);
  CHECK(late.wait_last(0ms));
  CHECK(late.error() == reason::shutting_down);
  running->source().pause();
  running->source().taken(100);
  running->source().resume();
  running->source().end();
  running->leave();
  listener other(follower);
  other.leave();
  CHECK_FALSE(fixture.service->begin(fixture.head("r3"), service_fixture::request()).ok());
  fixture.service->add_finished(fixture.head("r4"), {});
  fixture.service->hand_over();
  fixture.service->stop();
  CHECK(service_fixture::eventually([&] { return fixture.engine.running() == 0; }));
}

TEST_CASE("Many who begin, read, cancel, erase and leave at once leave nothing behind") {
  in_both([](service_fixture& fixture) {
    play(fixture, pieces(40, 50us));
    std::atomic<int> wrong{0};
    std::vector<std::thread> clients;
    for (unsigned which = 0; which < 4; ++which)
      clients.emplace_back([&, which] {
        std::mt19937 random(which);
        for (int i = 0; i < 40; ++i) {
          const auto id = std::to_string(which) + "-" + std::to_string(i);
          const bool background = random() % 2 == 0;
          listener mine(fixture.begin(fixture.head(id, "t", background)));
          std::unique_ptr<listener> other;
          if (auto found = fixture.service->follow(id, "t"))
            other = std::make_unique<listener>(std::move(found->source));
          mine.wait_events(random() % 30);
          switch (random() % 4) {
          case 0:
            fixture.service->cancel(id, "t");
            break;
          case 1:
            fixture.service->erase(id, "t");
            break;
          case 2:
            mine.leave();
            break;
          default:
            break;
          }
          if (other != nullptr && !other->wait_last()) ++wrong;
          other.reset();
          if (random() % 2 == 0) fixture.service->erase(id, "t");
        }
      });
    for (auto& one : clients)
      one.join();
    CHECK(wrong == 0);
    for (int which = 0; which < 4; ++which)
      for (int i = 0; i < 40; ++i)
        fixture.service->erase(std::to_string(which) + "-" + std::to_string(i), "t");
    CHECK(fixture.service->bytes() == 0);
    CHECK(service_fixture::eventually([&] { return fixture.engine.running() == 0; }));
  });
}
