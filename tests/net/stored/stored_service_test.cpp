// Stored responses from begin to end: what readers get, who may end what, and what is left behind.
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
    service_bench bench(kept_in(nullptr));
    test(bench);
  }
  SECTION("in a folder") {
    const scratch_folder folder;
    service_bench bench(kept_in(&folder));
    test(bench);
  }
}

void play(service_bench& bench, script s) {
  bench.engine.set_script([s](const actors::request&) { return s; });
}

} // namespace

TEST_CASE("A response is read while it runs and when it is over") {
  in_both([](service_bench& bench) {
    play(bench, pieces(10));
    listener first(bench.begin(bench.head("r1")));
    REQUIRE(first.wait_last());
    first.forget();
    const auto told = first.records();
    CHECK(told.size() == 12); // started, the pieces, finish
    CHECK(bench.records("r1") == told);
    REQUIRE(bench.wait_over("r1"));
    listener later(bench.follow("r1"));
    REQUIRE(later.wait_last());
    CHECK(later.records() == told);
    CHECK(says_nothing(later.events().front()));
    CHECK(later.count() == told.size() + 1);
    const auto submitted = bench.engine.submitted();
    REQUIRE(submitted.size() == 1);
    CHECK(submitted.front().sampling.seed.has_value());
    CHECK(bench.service->find("r1", "")->head->seed == submitted.front().sampling.seed);
  });
}

TEST_CASE("Each reader gets each event once and in order, whenever it comes, pauses and leaves") {
  in_both([](service_bench& bench) {
    std::mt19937 random(47);
    const auto below = [&](unsigned n) { return random() % n; };
    for (int round = 0; round < 12; ++round) {
      const auto id = "r" + std::to_string(round);
      play(bench, pieces(20 + below(300), std::chrono::microseconds(below(100))));
      std::vector<std::unique_ptr<listener>> readers;
      readers.push_back(std::make_unique<listener>(bench.begin(bench.head(id, "", true))));
      std::vector<std::unique_ptr<listener>> gone;
      for (int action = 0; action < 60; ++action) {
        auto& one = readers[below(static_cast<unsigned>(readers.size()))];
        switch (below(6)) {
        case 0:
          // Not before it begins: POST answers first.
          if (auto found = bench.service->follow(id, ""))
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
      CHECK(bench.records(id) == whole);
      for (const auto& one : gone) {
        const auto part = one->records();
        REQUIRE(part.size() <= whole.size());
        CHECK(std::equal(part.begin(), part.end(), whole.begin()));
      }
    }
  });
}

TEST_CASE("A reader that takes nothing is given 64 events, and goes on when it takes some") {
  in_both([](service_bench& bench) {
    play(bench, pieces(300));
    listener slow(bench.begin(bench.head("r1")), false);
    REQUIRE(bench.wait_over("r1"));
    CHECK(slow.count() == 64);
    slow.source().taken(10);
    CHECK(slow.count() == 74);
    slow.source().pause();
    slow.source().taken(1000);
    CHECK(slow.count() == 74);
    slow.source().resume();
    CHECK(slow.wait_last(0ms));
    CHECK(slow.records() == bench.records("r1"));
  });
}

TEST_CASE("What somebody reads is not displaced, and what nobody reads any more is") {
  auto options = kept_in(nullptr);
  options.max_memory_bytes = 64 * 1024;
  service_bench bench(options);
  play(bench, pieces(200));
  const auto add = [&](const std::string& id) {
    listener one(bench.begin(bench.head(id)));
    REQUIRE(one.wait_last());
    REQUIRE(bench.wait_over(id));
    one.forget();
  };
  add("first");
  auto reader = std::make_unique<listener>(bench.follow("first"), false);
  for (int i = 0; i < 10; ++i)
    add("r" + std::to_string(i));
  CHECK_FALSE(bench.service->find("r0", "").has_value());
  CHECK(bench.service->find("first", "").has_value());
  CHECK(bench.service->bytes() <= options.max_memory_bytes);
  // Where all that is over is read, nothing new has room.
  std::vector<std::unique_ptr<listener>> others;
  for (int i = 0; i < 10; ++i)
    if (auto found = bench.service->follow("r" + std::to_string(i), ""))
      others.push_back(std::make_unique<listener>(std::move(found->source), false));
  REQUIRE_FALSE(others.empty());
  auto refused = bench.head("large");
  refused.asked = value_object{{"body", std::string(30'000, 'x')}};
  CHECK_FALSE(bench.service->begin(refused, bench.request()).ok());
  others.clear();
  reader.reset();
  CHECK(bench.service->begin(refused, bench.request()).ok());
  CHECK_FALSE(bench.service->find("first", "").has_value());
}

TEST_CASE("Readers that rest keep no more in memory than their tenant's part of it") {
  const scratch_folder folder;
  auto options = kept_in(&folder);
  options.max_memory_bytes = 64 * 1024;
  service_bench bench(options);
  bench.tenants = 2;
  play(bench, pieces(300));
  std::vector<std::unique_ptr<listener>> readers;
  const auto read = [&](const std::string& id, const std::string& tenant) {
    readers.push_back(std::make_unique<listener>(bench.begin(bench.head(id, tenant)), false));
    readers.back()->source().pause();
    REQUIRE(bench.wait_over(id, tenant));
    REQUIRE(service_bench::eventually(
        [&] { return std::filesystem::exists(folder.path() / (id + ".response")); }));
  };
  read("other", "bob");
  read("r0", "ann");
  for (int i = 1; i < 4; ++i)
    read("r" + std::to_string(i), "ann");
  CHECK(readers[1]->error() == reason::slow_reader);
  CHECK(bench.records("r0", "ann").size() == 302);
  CHECK_FALSE(readers.back()->error().has_value());
  CHECK_FALSE(readers.front()->error().has_value()); // another tenant's
  for (auto& one : {&readers.front(), &readers.back()}) {
    (*one)->source().resume();
    (*one)->source().taken(1000);
    CHECK((*one)->wait_last(0ms));
  }
}

TEST_CASE("A response has at most 64 readers, and none once its time is over") {
  auto options = kept_in(nullptr);
  options.keep = 4s; // 64 readers come within it, also on a busy machine
  service_bench bench(options);
  play(bench, pieces(100));
  listener first(bench.begin(bench.head("r1")), false);
  std::vector<std::unique_ptr<listener>> readers;
  for (int i = 0; i < 64; ++i)
    readers.push_back(std::make_unique<listener>(bench.follow("r1"), false));
  CHECK(readers.back()->error() == reason::queue_full);
  CHECK_FALSE(readers[62]->error().has_value());
  CHECK(service_bench::eventually([&] { return !bench.service->find("r1", "").has_value(); }));
  first.source().taken(1000);
  CHECK(service_bench::eventually([&] { return first.error() == reason::not_stored; }));
}

TEST_CASE("Choices are told in turns, in whatever order steps tell them") {
  in_both([](service_bench& bench) {
    auto alternating = pieces(10);
    alternating.alternates = true;
    play(bench, alternating);
    auto head = bench.head("r1");
    head.n_choices = 3;
    listener reader(bench.begin(std::move(head)));
    REQUIRE(reader.wait_last());
    const auto in_turns = [](const std::vector<actors::event>& events, std::size_t begin) {
      REQUIRE(events.size() == begin + 3 * 11);
      for (std::size_t i = begin; i < events.size(); ++i) {
        CHECK(events[i].choice == static_cast<std::int32_t>((i - begin) % 3));
        CHECK(events[i].last == (i + 1 == events.size()));
      }
    };
    in_turns(reader.events(), 1);
    CHECK(bench.service->find("r1", "")->head->n_choices == 3);
    REQUIRE(bench.wait_over("r1"));
    listener later(bench.follow("r1"), false);
    CHECK(later.count() == 33 + 2); // all have room
    in_turns(later.events(), 2);
    // What was drawn is written down at once, also of a choice that is ahead.
    CHECK(read_record(bench.records("r1")[1])->choice == 2);
  });
}

TEST_CASE("A reader of several choices that takes nothing is given 64 events") {
  in_both([](service_bench& bench) {
    auto alternating = pieces(100);
    alternating.alternates = true;
    play(bench, alternating);
    auto head = bench.head("r1");
    head.n_choices = 2;
    listener slow(bench.begin(std::move(head)), false);
    REQUIRE(bench.wait_over("r1"));
    CHECK(slow.count() == 64);
    slow.source().taken(1000);
    CHECK(slow.count() == 1 + 2 * 101);
  });
}

TEST_CASE("Readers that have their last event keep nothing") {
  in_both([](service_bench& bench) {
    play(bench, pieces(10));
    std::vector<std::weak_ptr<event_source>> sources;
    {
      listener first(bench.begin(bench.head("r1")));
      listener only_begin(bench.begin(bench.head("r2", "", true), true));
      REQUIRE(first.wait_last());
      REQUIRE(only_begin.wait_last());
      CHECK(only_begin.count() == 1);
      REQUIRE(bench.wait_over("r1"));
      REQUIRE(bench.wait_over("r2"));
      listener later(bench.follow("r1"));
      REQUIRE(later.wait_last());
      for (auto* one : {&first, &only_begin, &later}) {
        sources.push_back(one->watch());
        one->forget();
      }
    }
    for (const auto& one : sources)
      CHECK(service_bench::eventually([&] { return one.expired(); }));
    if (bench.options.folder.empty()) return;
    // What is over and has a file is not held in memory: each look reads it anew.
    CHECK(service_bench::eventually([&] {
      return bench.service->find("r1", "")->bytes != bench.service->find("r1", "")->bytes;
    }));
    // Readers at the same time share what was read.
    auto a = bench.follow("r1"), b = bench.follow("r1");
    listener one(a), other(b);
    CHECK(bench.service->find("r1", "")->bytes != nullptr);
    CHECK(one.wait_last());
    CHECK(other.wait_last());
  });
}

TEST_CASE("A reader that starts after the end, the deletion or the hand-over is told") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  SECTION("after the end") {
    play(bench, pieces(10, 2ms));
    listener first(bench.begin(bench.head("r1")));
    REQUIRE(first.wait_events(1));
    auto late = bench.follow("r1");
    REQUIRE(first.wait_last());
    first.forget();
    REQUIRE(service_bench::eventually([&] {
      return bench.service->find("r1", "")->bytes != bench.service->find("r1", "")->bytes;
    }));
    listener reader(late);
    CHECK(reader.wait_last());
    CHECK(reader.records() == first.records());
  }
  SECTION("after the deletion") {
    play(bench, endless_pieces());
    listener first(bench.begin(bench.head("r1")));
    REQUIRE(first.wait_events(3));
    auto late = bench.follow("r1");
    CHECK(bench.service->erase("r1", ""));
    listener reader(late);
    CHECK(reader.wait_last());
    CHECK(reader.error() == reason::cancelled);
    CHECK(first.wait_last());
    CHECK(first.error() == reason::cancelled);
  }
  SECTION("after the hand-over") {
    play(bench, endless_pieces());
    listener first(bench.begin(bench.head("r1", "", true)));
    REQUIRE(first.wait_events(3));
    auto late = bench.follow("r1");
    bench.service->hand_over();
    first.leave();
    CHECK(bench.engine.wait_cancelled(1));
    listener reader(late);
    CHECK(reader.wait_last());
    CHECK(reader.error() == reason::interrupted);
  }
}

TEST_CASE("Whoever leaves cancels, but for the background, other readers and grace") {
  config::response_options options;
  SECTION("at once") {
    service_bench bench(options);
    play(bench, endless_pieces());
    listener first(bench.begin(bench.head("r1")));
    REQUIRE(first.wait_events(2));
    auto second = std::make_unique<listener>(bench.follow("r1"));
    first.leave();
    CHECK_FALSE(bench.engine.wait_cancelled(1, 50ms));
    second->leave();
    CHECK(bench.engine.wait_cancelled(1));
    REQUIRE(bench.wait_over("r1"));
    CHECK(read_record(bench.records("r1").back())->error->code == reason::cancelled);
  }
  SECTION("before the engine has it") {
    service_bench bench(options);
    for (int i = 0; i < 50; ++i) {
      listener first(bench.begin(bench.head("r" + std::to_string(i))));
      first.leave();
    }
    for (int i = 0; i < 50; ++i)
      CHECK(bench.wait_over("r" + std::to_string(i)));
    CHECK(service_bench::eventually([&] { return bench.engine.running() == 0; }));
  }
  SECTION("of the background") {
    service_bench bench(options);
    play(bench, pieces(50, 1ms));
    listener first(bench.begin(bench.head("r1", "", true)));
    first.leave();
    REQUIRE(bench.wait_over("r1"));
    CHECK(bench.records("r1").size() == 52);
  }
  SECTION("in grace") {
    options.grace = 150ms;
    service_bench bench(options);
    play(bench, endless_pieces());
    listener first(bench.begin(bench.head("r1")));
    REQUIRE(first.wait_events(2));
    first.leave();
    std::this_thread::sleep_for(50ms);
    listener again(bench.follow("r1"));
    CHECK_FALSE(bench.engine.wait_cancelled(1, 250ms)); // it came back in time
    again.leave();
    CHECK(bench.engine.wait_cancelled(1));
    CHECK(bench.wait_over("r1"));
  }
}

TEST_CASE("A response is cancelled and erased at each stage") {
  in_both([](service_bench& bench) {
    auto& service = *bench.service;
    CHECK_FALSE(service.cancel("r0", ""));
    CHECK_FALSE(service.erase("r0", ""));
    { // asked for, and not begun
      const auto never = bench.begin(bench.head("r0"));
      CHECK_FALSE(service.cancel("r0", ""));
    }
    play(bench, endless_pieces());
    for (const int wait_for : {0, 1, 2, 10}) { // events
      const auto id = "c" + std::to_string(wait_for);
      listener reader(bench.begin(bench.head(id)));
      REQUIRE(reader.wait_events(static_cast<std::size_t>(wait_for)));
      CHECK(service.cancel(id, ""));
      CHECK(bench.is_over(id));
      REQUIRE(reader.wait_last());
      CHECK(reader.error() == reason::cancelled);
      const auto records = bench.records(id);
      CHECK(records == reader.records());
      CHECK(service.cancel(id, "")); // twice
      CHECK(bench.records(id) == records);
      CHECK(service.erase(id, ""));
      CHECK_FALSE(service.find(id, "").has_value());
      CHECK_FALSE(service.follow(id, "").has_value());
      CHECK_FALSE(service.erase(id, ""));

      const auto gone = "e" + std::to_string(wait_for);
      listener other(bench.begin(bench.head(gone)));
      REQUIRE(other.wait_events(static_cast<std::size_t>(wait_for)));
      CHECK(service.erase(gone, ""));
      REQUIRE(other.wait_last());
      CHECK(other.error() == reason::cancelled);
      CHECK_FALSE(service.find(gone, "").has_value());
    }
    CHECK(service_bench::eventually([&] { return bench.engine.running() == 0; }));
    CHECK(service.bytes() == 0);
    bench.restart();
    CHECK(bench.service->bytes() == 0);
  });
}

TEST_CASE("What the engine refuses at once is stored of the background alone") {
  in_both([](service_bench& bench) {
    script refusing;
    refusing.refusal = actors::request_error{reason::queue_full, "full", ""};
    play(bench, refusing);
    listener first(bench.begin(bench.head("r1")));
    REQUIRE(first.wait_last());
    CHECK(first.error() == reason::queue_full);
    CHECK(first.count() == 1); // so that it becomes a status
    CHECK_FALSE(bench.service->find("r1", "").has_value());
    CHECK(bench.service->bytes() == 0);
    listener background(bench.begin(bench.head("r2", "", true)));
    REQUIRE(background.wait_last());
    CHECK(background.count() == 2); // written down, failed
    REQUIRE(bench.wait_over("r2"));
    CHECK(bench.records("r2") == background.records());
    bench.engine.set_state(actors::engine_state::draining);
    listener late(bench.begin(bench.head("r3")));
    REQUIRE(late.wait_last());
    CHECK(late.error() == reason::shutting_down);
    CHECK_FALSE(bench.service->find("r3", "").has_value());
  });
}

TEST_CASE("A disk that takes nothing refuses new responses and hurts no other") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  play(bench, pieces(300, 1ms));
  listener running(bench.begin(bench.head("r1")));
  REQUIRE(running.wait_events(3));
  bench.files.full = true;
  REQUIRE(running.wait_events(running.count() + 5));
  for (const bool background : {false, true}) {
    listener refused(bench.begin(bench.head("no", "", background), background));
    REQUIRE(refused.wait_last());
    CHECK(refused.error() == reason::not_stored);
    CHECK(refused.count() == 1);
    CHECK_FALSE(bench.service->find("no", "").has_value());
  }
  CHECK(bench.engine.submitted().size() == 1); // nothing was computed
  CHECK(bench.service->write_failures() > 0);
  REQUIRE(running.wait_last());
  CHECK(running.records().size() == 302);
  CHECK(bench.records("r1") == running.records());
  bench.files.full = false;
  listener after(bench.begin(bench.head("r2")));
  REQUIRE(after.wait_last());
  REQUIRE(bench.wait_over("r2"));
  CHECK(service_bench::eventually(
      [&] { return std::filesystem::exists(folder.path() / "r1.response"); }));
  running.forget();
  after.forget();
  bench.restart();
  CHECK(bench.is_over("r1"));
  CHECK(bench.records("r1") == running.records());
  CHECK(bench.records("r2") == after.records());
}

TEST_CASE(
    "What the journal did not take comes once, also when the journal is written anew between") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  play(bench, endless_pieces());
  listener running(bench.begin(bench.head("r1")));
  listener other(bench.begin(bench.head("r2", "", true), true));
  REQUIRE(other.wait_last());
  other.forget();
  REQUIRE(running.wait_events(3));
  bench.files.journal_full = true;
  const auto failures = bench.service->write_failures();
  REQUIRE(running.wait_events(running.count() + 5));
  REQUIRE(bench.service->write_failures() > failures);
  // What is over leaves dead bytes, so that the journal is written anew. Then it is another file.
  CHECK(bench.service->cancel("r2", ""));
  REQUIRE(service_bench::eventually([&] {
    const auto before = bench.service->write_failures();
    return running.wait_events(running.count() + 5) && bench.service->write_failures() == before;
  }));
  bench.files.journal_full = false;
  running.forget();
  play(bench, pieces(0));
  const auto before = running.records();
  bench.restart();
  REQUIRE(bench.engine.wait_submitted(3));
  const auto made = bench.engine.submitted().back().made;
  REQUIRE(made.size() == 1);
  const auto& tokens = made.front().tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    REQUIRE(tokens[i] == 100 + static_cast<std::int32_t>(i)); // none is missing, none twice
  CHECK(tokens.size() + 1 >= before.size());
}

TEST_CASE("A response goes on only with the model that has begun it, also without a token") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  auto begun = endless_pieces();
  begun.step = 1h; // its start is told, and no token comes
  play(bench, begun);
  listener background(bench.begin(bench.head("r1", "", true)));
  REQUIRE(background.wait_events(2));
  background.forget();
  bench.restart();
  REQUIRE(bench.engine.wait_submitted(2));
  const auto again = bench.engine.submitted().back();
  CHECK(again.continues == "the scripted model");
  REQUIRE(again.made.size() == 1);
  CHECK(again.made.front().tokens.empty());
}

TEST_CASE("What was deleted is removed from the disk, also where the first try fails") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  listener first(bench.begin(bench.head("r1")));
  REQUIRE(first.wait_last());
  first.forget();
  REQUIRE(service_bench::eventually(
      [&] { return std::filesystem::exists(folder.path() / "r1.response"); }));
  bench.files.keeps = true;
  CHECK(bench.service->erase("r1", ""));
  CHECK_FALSE(bench.service->find("r1", "").has_value());
  CHECK(bench.service->write_failures() == 1);
  bench.files.keeps = false;
  CHECK(service_bench::eventually(
      [&] { return !std::filesystem::exists(folder.path() / "r1.response"); }));
}

TEST_CASE("What was deleted is not there again although its file could not be finished") {
  const scratch_folder folder;
  auto options = kept_in(&folder);
  options.sync = "finished";
  service_bench bench(options);
  bench.files.unsynced = true;
  listener first(bench.begin(bench.head("r1")));
  REQUIRE(first.wait_last());
  first.forget();
  const auto has_file = [&] { return std::filesystem::exists(folder.path() / "r1.response"); };
  REQUIRE(service_bench::eventually(has_file));
  REQUIRE(service_bench::eventually([&] { return bench.service->write_failures() > 0; }));
  CHECK(bench.is_over("r1"));
  CHECK(bench.service->erase("r1", ""));
  CHECK_FALSE(has_file());
  bench.files.unsynced = false;
  bench.restart();
  CHECK_FALSE(bench.service->find("r1", "").has_value());
}

TEST_CASE("Nobody is shown what is not written yet") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  play(bench, pieces(20, 2ms));
  listener first(bench.begin(bench.head("r1")));
  REQUIRE(first.wait_events(2));
  bench.files.stands = true;
  std::this_thread::sleep_for(20ms);
  const auto told = first.count();
  REQUIRE(service_bench::eventually([&] { return bench.engine.running() == 0; }));
  CHECK(first.count() == told);
  bench.files.lets_one = true; // now all that is left waits to be written, the end as well
  std::this_thread::sleep_for(50ms);
  CHECK(bench.service->find("r1", "")->running);
  CHECK(bench.records("r1") == first.records());
  bench.files.stands = false;
  REQUIRE(first.wait_last());
  CHECK(bench.wait_over("r1"));
}

TEST_CASE("A response whose records have no end ends with an error") {
  in_both([](service_bench& bench) {
    actors::event ev;
    ev.started = true;
    bench.service->add_finished(bench.head("r1"), {write_record(ev), "damaged"});
    listener reader(bench.follow("r1"));
    REQUIRE(reader.wait_last());
    CHECK(reader.error() == reason::executor_failed);
    CHECK(reader.records().size() == 2);
  });
}

TEST_CASE("Tenants share nothing but the number of parts") {
  in_both([](service_bench& bench) {
    bench.options.max_memory_bytes = bench.options.max_folder_bytes = 64 << 10;
    bench.tenants = 2;
    bench.restart();
    auto& service = *bench.service;
    play(bench, pieces(5));
    const auto run = [&](const std::string& id, const std::string& tenant) {
      listener one(bench.begin(bench.head(id, tenant)));
      REQUIRE(one.wait_last());
      REQUIRE(bench.wait_over(id, tenant));
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
    CHECK_FALSE(service.find("b0", "bob").has_value()); // the oldest have gone
    CHECK(service.find("b59", "bob").has_value());
    CHECK(service.bytes() <= 64 << 10);
    // What runs never goes, so that its tenant has no room, and others have theirs.
    play(bench, endless_pieces());
    auto big = bench.head("b60", "bob");
    big.asked = value_object{{"body", value_object{{"input", std::string(30 << 10, 'x')}}}};
    listener fills(bench.begin(std::move(big)));
    REQUIRE(fills.wait_events(2));
    auto next = bench.head("b61", "bob");
    next.asked = value_object{{"body", value_object{{"input", std::string(8 << 10, 'x')}}}};
    const auto submitted = bench.engine.submitted().size();
    const auto refused = service.begin(next, service_bench::request());
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.code().code == std::variant<net::errc, actors::errc>(net::errc::storage_full));
    CHECK(bench.engine.submitted().size() == submitted);
    next.tenant = "ann";
    CHECK(service.begin(std::move(next), service_bench::request()).ok());
    CHECK(service.find("a0", "ann").has_value());
    // It grows beyond all that its tenant may have.
    REQUIRE(fills.wait_last());
    CHECK(fills.error() == reason::too_large);
    CHECK(service.find("a0", "ann").has_value());
  });
}

TEST_CASE("Those that begin at the same time do not share one room") {
  config::response_options options;
  options.max_memory_bytes = 64 << 10;
  service_bench bench(options);
  play(bench, endless_pieces());
  const auto big = [&](const std::string& id) {
    auto h = bench.head(id);
    h.asked = value_object{{"body", value_object{{"input", std::string(40 << 10, 'x')}}}};
    return h;
  };
  auto a = bench.begin(big("a")), b = bench.begin(big("b"));
  listener first(a), second(b);
  REQUIRE(second.wait_last());
  CHECK(second.error() == reason::not_stored);
  CHECK(first.wait_events(2));
}

TEST_CASE("Responses expire, also those of batches") {
  in_both([](service_bench& bench) {
    bench.options.keep = 2s;
    bench.restart();
    auto old = bench.head("b1");
    old.created_unix_s -= 1;
    bench.service->add_finished(std::move(old), {write_record([] {
                                  actors::event ev;
                                  ev.finish = actors::finish_reason::stop;
                                  ev.last = true;
                                  return ev;
                                }())});
    CHECK(bench.is_over("b1"));
    CHECK(service_bench::eventually([&] { return !bench.service->find("b1", ""); }, 5s));
    listener one(bench.begin(bench.head("r1")));
    REQUIRE(one.wait_last());
    CHECK(service_bench::eventually([&] { return !bench.service->find("r1", ""); }, 5s));
    CHECK(bench.service->bytes() == 0);
  });
}

TEST_CASE("A file that is damaged is kept no longer than one that is not") {
  const scratch_folder folder;
  auto options = kept_in(&folder);
  options.keep = std::chrono::hours(1);
  service_bench bench(options);
  play(bench, pieces(5));
  for (const auto* id : {"r1", "r2", "r3"}) {
    listener one(bench.begin(bench.head(id)));
    REQUIRE(one.wait_last());
    REQUIRE(service_bench::eventually(
        [&] { return std::filesystem::exists(folder.path() / (std::string(id) + ".response")); }));
  }
  bench.service.reset();
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
  bench.open();
  CHECK_FALSE(std::filesystem::exists(file_of("r1")));
  CHECK(std::filesystem::exists(file_of("r2")));
  CHECK_FALSE(bench.service->find("r2", "").has_value());
  CHECK(bench.records("r3").size() == 7);
}

TEST_CASE("What runs goes on after a restart") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  play(bench, endless_pieces());
  auto first = std::make_unique<listener>(bench.begin(bench.head("r1", "ann")));
  listener background(bench.begin(bench.head("r2", "ann", true), true));
  REQUIRE(background.wait_last());
  background.forget();
  REQUIRE(first->wait_events(5));
  bench.service->hand_over();
  CHECK(bench.engine.wait_cancelled(1)); // what nobody reads
  first->leave();
  CHECK(bench.engine.wait_cancelled(2)); // nobody any more
  first.reset();
  const auto seed = bench.engine.submitted().front().sampling.seed;
  const auto before = bench.engine.submitted().size();
  auto rest = pieces(10, 1ms);
  SECTION("at once") {}
  SECTION("when the queue has room") {
    script full;
    full.refusal = actors::request_error{reason::queue_full, "full", ""};
    play(bench, full);
    bench.restart();
    REQUIRE(bench.engine.wait_submitted(before + 4)); // each twice
    play(bench, rest);
    REQUIRE(bench.wait_over("r1", "ann"));
    REQUIRE(bench.wait_over("r2", "ann"));
    CHECK_FALSE(read_record(bench.records("r1", "ann").back())->error.has_value());
    CHECK_FALSE(read_record(bench.records("r2", "ann").back())->error.has_value());
    return;
  }
  SECTION("when the model is there") {
    bench.refuses_again = api_error{reason::not_ready, "loading", ""};
    bench.restart();
    std::this_thread::sleep_for(50ms);
    CHECK(bench.service->find("r1", "ann")->running);
    bench.service.reset();
    bench.refuses_again.reset();
  }
  SECTION("or ends where it cannot") {
    bench.refuses_again = api_error{reason::unknown_model, "gone", ""};
    bench.restart();
    REQUIRE(bench.wait_over("r1", "ann"));
    CHECK(read_record(bench.records("r1", "ann").back())->error->code == reason::model_changed);
    return;
  }
  play(bench, rest);
  bench.restart();
  REQUIRE(bench.engine.wait_submitted(before + 2));
  listener reader(bench.follow("r1", "ann"));
  REQUIRE(reader.wait_last());
  const auto records = reader.records();
  CHECK(records == bench.records("r1", "ann"));
  int starts = 0;
  for (const auto& one : records)
    starts += read_record(one)->started ? 1 : 0;
  CHECK(starts == 1);
  int same = 0;
  const auto submitted = bench.engine.submitted();
  for (auto one = submitted.begin() + static_cast<std::ptrdiff_t>(before); one != submitted.end();
       ++one) {
    CHECK(one->tenant == "ann");
    if (one->sampling.seed != seed) continue;
    ++same;
    REQUIRE(one->made.size() == 1);
    CHECK(one->made.front().tokens.size() >= 3); // those that its reader had, at least
    CHECK(one->made.front().tokens.front() == 100);
  }
  CHECK(same == 1);
}

TEST_CASE("What had ended before a stop is over after it, also while its model is loaded") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  const auto head = write_head(bench.head("r1"));
  bench.service.reset();
  actors::event begun, ended;
  begun.started = true;
  ended.finish = actors::finish_reason::stop;
  ended.last = true;
  {
    const auto files = open_folder(folder.path());
    begin(*files, "r1", head);
    REQUIRE_FALSE(add(*files, {{"r1", write_record(begun)}, {"r1", write_record(ended)}}));
  }
  bench.engine.set_state(actors::engine_state::loading);
  bench.open();
  CHECK(bench.is_over("r1"));
  CHECK(service_bench::eventually(
      [&] { return std::filesystem::exists(folder.path() / "r1.response"); }));
  listener reader(bench.follow("r1"));
  CHECK(reader.wait_last());
}

TEST_CASE("What draws nothing goes on without what was made, and other responses with it") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  play(bench, endless_pieces());
  auto first = std::make_unique<listener>(bench.begin(bench.head("r1")));
  REQUIRE(first->wait_events(1));
  bench.service->hand_over();
  first.reset();
  CHECK(bench.engine.wait_cancelled(1));
  bench.max_tokens_again = GENERATE(0, 5);
  play(bench, pieces(2));
  bench.restart();
  REQUIRE(bench.wait_over("r1"));
  const auto again = bench.engine.submitted().back();
  CHECK(again.continues == "the scripted model");
  CHECK(again.made.size() == (bench.max_tokens_again == 0 ? 0 : 1));
}

TEST_CASE("A response goes on twice and no more") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  play(bench, endless_pieces());
  listener background(bench.begin(bench.head("r1", "", true), true));
  REQUIRE(background.wait_last());
  background.forget();
  for (std::size_t i = 1; i <= 2; ++i) {
    REQUIRE(bench.engine.wait_submitted(i));
    bench.restart(); // as a crash: nobody hands over
    REQUIRE(bench.service->find("r1", "")->running);
  }
  REQUIRE(bench.engine.wait_submitted(3));
  bench.restart();
  REQUIRE(bench.wait_over("r1"));
  CHECK(read_record(bench.records("r1").back())->error->code == reason::executor_failed);
}

TEST_CASE("What a client was told before the end holds after it") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  play(bench, endless_pieces());
  for (const auto* id : {"cancelled", "erased"}) {
    listener one(bench.begin(bench.head(id, "", true), true));
    REQUIRE(one.wait_last());
    one.forget();
  }
  REQUIRE(bench.engine.wait_running(2));
  bench.service->hand_over();
  CHECK(bench.service->cancel("cancelled", ""));
  CHECK(bench.service->erase("erased", ""));
  bench.restart();
  REQUIRE(bench.is_over("cancelled"));
  CHECK(read_record(bench.records("cancelled").back())->error->code == reason::cancelled);
  CHECK_FALSE(bench.service->find("erased", "").has_value());
}

TEST_CASE("What is asked for while the end comes holds after it") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  play(bench, endless_pieces());
  for (const auto* id : {"canc", "eras", "goes"}) {
    listener one(bench.begin(bench.head(id, "", true), true));
    REQUIRE(one.wait_last());
    one.forget();
  }
  REQUIRE(bench.engine.wait_running(3));
  bench.files.stands = true; // the thread that writes is busy
  std::this_thread::sleep_for(50ms);
  std::vector<std::thread> others;
  others.emplace_back([&] { bench.service->cancel("canc", ""); });
  others.emplace_back([&] { bench.service->erase("eras", ""); });
  std::this_thread::sleep_for(50ms);
  others.emplace_back([&] { bench.service->stop(); });
  std::this_thread::sleep_for(50ms);
  bench.files.stands = false;
  for (auto& one : others)
    one.join();
  bench.restart();
  REQUIRE(bench.is_over("canc"));
  CHECK(read_record(bench.records("canc").back())->error->code == reason::cancelled);
  CHECK_FALSE(bench.service->find("eras", "").has_value());
  CHECK(bench.service->find("goes", "")->running);
}

TEST_CASE("Sources and the engine outlive the service's end") {
  const scratch_folder folder;
  service_bench bench(kept_in(&folder));
  play(bench, endless_pieces());
  auto running = std::make_unique<listener>(bench.begin(bench.head("r1")));
  REQUIRE(running->wait_events(3));
  const auto not_started = bench.begin(bench.head("r2"));
  const auto follower = bench.follow("r1");
  bench.service->stop();
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
  CHECK_FALSE(bench.service->begin(bench.head("r3"), service_bench::request()).ok());
  bench.service->add_finished(bench.head("r4"), {});
  bench.service->hand_over();
  bench.service->stop();
  CHECK(service_bench::eventually([&] { return bench.engine.running() == 0; }));
}

TEST_CASE("Many who begin, read, cancel, erase and leave at once leave nothing behind") {
  in_both([](service_bench& bench) {
    play(bench, pieces(40, 50us));
    std::atomic<int> wrong{0};
    std::vector<std::thread> clients;
    for (unsigned which = 0; which < 4; ++which)
      clients.emplace_back([&, which] {
        std::mt19937 random(which);
        for (int i = 0; i < 40; ++i) {
          const auto id = std::to_string(which) + "-" + std::to_string(i);
          const bool background = random() % 2 == 0;
          listener mine(bench.begin(bench.head(id, "t", background)));
          std::unique_ptr<listener> other;
          if (auto found = bench.service->follow(id, "t"))
            other = std::make_unique<listener>(std::move(found->source));
          mine.wait_events(random() % 30);
          switch (random() % 4) {
          case 0:
            bench.service->cancel(id, "t");
            break;
          case 1:
            bench.service->erase(id, "t");
            break;
          case 2:
            mine.leave();
            break;
          default:
            break;
          }
          if (other != nullptr && !other->wait_last()) ++wrong;
          other.reset();
          if (random() % 2 == 0) bench.service->erase(id, "t");
        }
      });
    for (auto& one : clients)
      one.join();
    CHECK(wrong == 0);
    for (int which = 0; which < 4; ++which)
      for (int i = 0; i < 40; ++i)
        bench.service->erase(std::to_string(which) + "-" + std::to_string(i), "t");
    CHECK(bench.service->bytes() == 0);
    CHECK(service_bench::eventually([&] { return bench.engine.running() == 0; }));
  });
}
