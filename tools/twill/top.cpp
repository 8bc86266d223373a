// `twill top`: shows the models, requests, memory and tokens per second of one or several daemons,
// and updates the display every second.
#include <CLI/CLI.hpp>

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"
#include "tools/twill/daemon_view.hpp"
#include "tools/twill/fleet_view.hpp"
#include "tools/twill/fleet_watch.hpp"
#include "tools/twill/interrupt.hpp"
#include "tools/twill/request_flags.hpp"

namespace twill::tools {
namespace {

constexpr int status_no_daemons = 2;

struct top_options {
  server_flags server;
  std::vector<std::string> urls;
  std::string admin;
  double seconds = 1;
  bool once = false;
};

std::size_t columns_of_terminal() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 200;
}

/// The number of lines of the terminal; 0 when it is unknown.
std::size_t lines_of_terminal() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// Switches to the terminal's alternate screen and makes single keys readable without Enter. The
/// destructor restores the previous screen and mode.
class live_screen {
public:
  live_screen() {
    keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (keys_) {
      termios now = before_;
      now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
    put("\x1b[?1049h\x1b[?25l");
  }
  live_screen(const live_screen&) = delete;
  live_screen& operator=(const live_screen&) = delete;
  ~live_screen() {
    put("\x1b[?25h\x1b[?1049l");
    if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  void draw(const std::string& text) {
    std::string frame = "\x1b[H";
    for (const char c : text)
      frame += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
    put(frame + "\x1b[J");
  }

  /// Waits for `time`; returns true when the user wants to quit.
  bool rest(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (interrupts() == 0) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (!keys_ || ::poll(&input, 1, static_cast<int>(left.count())) < 0) {
        if (!keys_) std::this_thread::sleep_for(std::min(left, std::chrono::milliseconds(50)));
        continue;
      }
      if (input.revents == 0) continue;
      char key = 0;
      if (::read(STDIN_FILENO, &key, 1) <= 0) keys_ = false;
      if (key == 'q' || key == 'Q') return true;
    }
    return true;
  }

private:
  termios before_{};
  bool keys_ = false;
};

std::chrono::milliseconds pause_of(const top_options& options) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options.seconds));
}

int run_top(const top_options& options) {
  const auto& flags = options.server;
  const bool admin = !options.admin.empty();
  const auto where =
      admin ? parse_endpoint(options.admin, flags.api_key, flags.cacert) : flags.where();
  const auto look = [&] { return admin ? look_as_administrator(where) : look_at(where); };
  const auto pause = pause_of(options);
  daemon_view before = look();
  if (options.once || !is_terminal(stream::out)) {
    std::this_thread::sleep_for(pause);
    write_out(top_text(look(), before, columns_of_terminal()));
    return status_ok;
  }
  count_interrupts(true);
  live_screen screen;
  daemon_view now = before;
  std::string lost;
  for (;;) {
    screen.draw(top_text(now, before, columns_of_terminal()) + "\n" +
                (lost.empty() ? "q leaves" : printable(lost)) + "\n");
    if (screen.rest(pause)) return status_ok;
    try {
      daemon_view next = look();
      before = std::move(now);
      now = std::move(next);
      lost.clear();
    } catch (const client_error& error) {
      lost = std::string(error.what()) + " (trying again; q leaves)";
    }
  }
}

/// Parses the addresses of several daemons; an address that is given twice is an error.
std::vector<endpoint> fleet_of(const top_options& options) {
  if (!options.admin.empty())
    throw CLI::ValidationError("--admin", "shows one daemon, and several are given by --url");
  std::vector<endpoint> fleet;
  std::set<std::string> addresses;
  for (const auto& url : options.urls) {
    fleet.push_back(parse_endpoint(url, options.server.api_key, options.server.cacert));
    if (const auto address = short_address(fleet.back()); !addresses.insert(address).second)
      throw CLI::ValidationError("--url", address + " is given twice");
  }
  return fleet;
}

int print_fleet(const std::vector<endpoint>& daemons, std::chrono::milliseconds pause) {
  const auto fleet = look_twice(daemons, pause);
  const bool seen = std::any_of(fleet.begin(), fleet.end(),
                                [](const fleet_member& one) { return one.now().has_value(); });
  if (seen) {
    write_out(fleet_text(fleet, columns_of_terminal(), 0));
    return status_ok;
  }
  for (const auto& member : fleet)
    std::fprintf(stderr, "%s %s\n", painted(stream::error, ink::red, "twill:").c_str(),
                 printable(member.trouble()).c_str());
  return status_no_daemons;
}

int run_fleet(const top_options& options) {
  const auto daemons = fleet_of(options);
  const auto pause = pause_of(options);
  if (options.once || !is_terminal(stream::out)) return print_fleet(daemons, pause);
  count_interrupts(true);
  live_screen screen;
  const fleet_watch watch(daemons, pause);
  // The screen is redrawn at least four times per second, so that the result of a query appears
  // soon even when `pause` is long.
  const auto rest = std::min(pause, std::chrono::milliseconds(250));
  do {
    constexpr std::size_t below = 3; // an empty line, the help line, and the line of the cursor
    const auto lines = lines_of_terminal();
    screen.draw(fleet_text(watch.members(), columns_of_terminal(),
                           lines == 0 ? 0 : std::max(lines, below + 1) - below) +
                "\nq leaves\n");
  } while (!screen.rest(rest));
  return status_ok;
}

} // namespace

void add_top(CLI::App& root, int& status) {
  auto* command =
      root.add_subcommand("top", "watch models, requests and tokens/s of one daemon or several");
  auto options = std::make_shared<top_options>();
  add_fleet_flags(*command, options->server, options->urls);
  command
      ->add_option(
          "--admin", options->admin,
          "address of the daemon's `server.admin_listen` (http, https or unix:/PATH): shows "
          "tenants, and models that are not loaded, too; takes the place of --url, and shows one "
          "daemon only")
      ->type_name("URL");
  command->add_option("--interval", options->seconds, "seconds between two looks, default 1")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS");
  command->add_flag("--once", options->once,
                    "print one look and exit, which is also what happens without a terminal");
  command->footer("Exit status: 0 ok, 1 failure, 2 wrong usage or no answer from any of several "
                  "daemons.");
  command->callback([options, &status] {
    if (options->urls.size() > 1) {
      status = run_fleet(*options);
      return;
    }
    if (!options->urls.empty()) options->server.url = options->urls.front();
    status = run_top(*options);
  });
}

} // namespace twill::tools
