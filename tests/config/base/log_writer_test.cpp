#include "config/base/log_writer.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/catch.hpp"

using namespace twill;
using namespace std::chrono_literals;

namespace {

std::string notice(std::uint64_t lost) {
  return "lost " + std::to_string(lost) + "\n";
}

struct pipe_ends {
  int read = -1, write = -1;
  pipe_ends() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    read = ends[0];
    write = ends[1];
  }
  ~pipe_ends() {
    close_read();
    close_write();
  }
  void close_read() {
    if (read >= 0) ::close(read);
    read = -1;
  }
  void close_write() {
    if (write >= 0) ::close(write);
    write = -1;
  }
};

/// Reads until the other end is closed, or until the text ends with `until`.
std::string read_all(int from, const std::string& until = "", std::size_t at_once = 65536) {
  std::string all, piece(at_once, '\0');
  for (;;) {
    const auto n = ::read(from, piece.data(), piece.size());
    if (n <= 0) return all;
    all.append(piece, 0, static_cast<std::size_t>(n));
    if (!until.empty() && all.ends_with(until)) return all;
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    REQUIRE(end != std::string::npos);
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

} // namespace

TEST_CASE("Lines of many threads come whole, in each one's order, and none is lost", "[config]") {
  pipe_ends ends;
  if (GENERATE(false, true)) // another process with the descriptor may set this
    ::fcntl(ends.write, F_SETFL, O_NONBLOCK);
  constexpr int n_threads = 4, n_lines = 2000;
  std::string text;
  std::thread reader([&] { text = read_all(ends.read, "", 1000); });
  {
    log::log_writer writer(ends.write, std::size_t{64} << 20, notice);
    std::vector<std::thread> threads;
    for (int t = 0; t < n_threads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < n_lines; ++i) {
          const std::size_t filling = i % 500 == 7 ? 20'000 : static_cast<std::size_t>(i % 90);
          writer.put(std::to_string(t) + " " + std::to_string(i) + " " + std::string(filling, 'x') +
                     "\n");
        }
      });
    for (auto& thread : threads)
      thread.join();
    CHECK(writer.flush(20s));
    CHECK(writer.unwritten() == 0);
    CHECK(writer.dropped() == 0);
    CHECK_FALSE(writer.is_blocked());
  }
  ends.close_write();
  reader.join();
  std::vector<int> next(n_threads, 0);
  for (const auto& line : lines_of(text)) {
    const auto t = static_cast<std::size_t>(std::stoi(line));
    REQUIRE(t < next.size());
    const int i = next[t]++;
    const std::size_t filling = i % 500 == 7 ? 20'000 : static_cast<std::size_t>(i % 90);
    REQUIRE(line == std::to_string(t) + " " + std::to_string(i) + " " + std::string(filling, 'x'));
  }
  CHECK(next == std::vector<int>(n_threads, n_lines));
}

TEST_CASE("A pipe that nobody reads delays no line, and a notice stands for those dropped",
          "[config]") {
  pipe_ends ends;
  constexpr std::size_t most_bytes = 100'000;
  log::log_writer writer(ends.write, most_bytes, notice);
  constexpr int n_lines = 20'000;
  const auto line = [](int i) {
    auto text = std::to_string(i);
    return text.append(50 - text.size() - 1, '.') + '\n';
  };
  auto longest = 0ns;
  for (int i = 0; i < n_lines; ++i) {
    const auto before = std::chrono::steady_clock::now();
    writer.put(line(i));
    longest =
        std::max<std::chrono::nanoseconds>(longest, std::chrono::steady_clock::now() - before);
  }
  CHECK(longest < 10s); // if put() waited for the reader, it would never return
  CHECK_FALSE(writer.flush(10ms));
  for (int i = 0; i < 500 && !writer.is_blocked(); ++i)
    std::this_thread::sleep_for(10ms);
  CHECK(writer.is_blocked());
  const auto dropped = writer.dropped();
  CHECK(dropped > n_lines / 2);
  CHECK(writer.unwritten() * 50 <= most_bytes + 64 * 1024);
  // Each notice ("lost N") stands where N lines are missing; the last notice is written although no
  // line follows it. There are two notices if the writing thread takes lines out of the queue for
  // the first time only after some were dropped: later lines then find room, until the queue is
  // full again.
  std::uint64_t next = 0, received = 0;
  std::string text;
  for (std::size_t at = 0; next < n_lines;) {
    const auto end = text.find('\n', at);
    if (end == std::string::npos) {
      std::string piece(1000, '\0');
      const auto n = ::read(ends.read, piece.data(), piece.size());
      REQUIRE(n > 0);
      text.append(piece, 0, static_cast<std::size_t>(n));
      continue;
    }
    const auto found = text.substr(at, end + 1 - at);
    at = end + 1;
    if (!found.starts_with("lost ")) {
      REQUIRE(found == line(static_cast<int>(next)));
      ++next;
    } else {
      received += std::stoull(found.substr(5));
      next += std::stoull(found.substr(5));
    }
  }
  CHECK(next == n_lines);
  CHECK(received == dropped);
  CHECK(writer.flush(10s));
  CHECK_FALSE(writer.is_blocked());
  writer.put("again\n");
  CHECK(read_all(ends.read, "again\n") == "again\n");
  CHECK(writer.dropped() == dropped);
}

TEST_CASE("The notice stands where the lines are missing", "[config]") {
  pipe_ends ends;
  ::fcntl(ends.read, F_SETPIPE_SZ, 4096);
  log::log_writer writer(ends.write, 10'000, notice);
  for (int i = 0; i < 3000; ++i)
    writer.put("before\n");
  const auto dropped = writer.dropped();
  REQUIRE(dropped > 0);
  // Reads until half of the bound is free again: from then on lines are taken.
  std::string text;
  std::string piece(2000, '\0');
  while (text.find("after") == std::string::npos) {
    writer.put("after\n");
    const auto n = ::read(ends.read, piece.data(), piece.size());
    REQUIRE(n > 0);
    text.append(piece, 0, static_cast<std::size_t>(n));
  }
  const auto at = text.find("lost ");
  REQUIRE(at != std::string::npos);
  CHECK(text.find("before", at) == std::string::npos);
  CHECK(text.rfind("after", at) == std::string::npos);
  std::thread rest([&] { read_all(ends.read); }); // or the destructor waits for ever
  CHECK(writer.flush(10s));
  ends.close_write();
  rest.join();
}

TEST_CASE("Lines that a descriptor refuses are counted, and nothing runs on", "[config]") {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  pipe_ends ends;
  ends.close_read();
  log::log_writer writer(ends.write, 1000, notice);
  for (int i = 0; i < 10; ++i) {
    writer.put("line\n");
    CHECK(writer.flush(10s));
  }
  CHECK(writer.dropped() == 10);
  CHECK(writer.unwritten() == 0);
  ::sigaction(SIGPIPE, &before, nullptr);
}

TEST_CASE("A crash loses no line", "[config]") {
  const int how = GENERATE(SIGABRT, SIGSEGV, SIGFPE);
  pipe_ends ends;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(how, SIG_DFL); // removes the test program's own handler
    auto& writer = *new log::log_writer(ends.write, std::size_t{4} << 20, notice);
    log::write_before_crashes(writer);
    for (int i = 0; i < 5000; ++i)
      writer.put("line " + std::to_string(i) + "\n");
    if (how == SIGABRT) std::abort();
    ::raise(how);
    ::_exit(0);
  }
  ends.close_write();
  std::this_thread::sleep_for(50ms); // the pipe is full meanwhile
  const auto lines = lines_of(read_all(ends.read));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == how);
  REQUIRE(lines.size() == 5000);
  CHECK(lines.back() == "line 4999");
}
