#include "tools/twill/line_editor.hpp"

#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>

#include "tools/twill/interrupt.hpp"

namespace twill::tools {
namespace {

constexpr int most_lines = 1000;

/// Waits for standard input; false after an interrupt. SIGINT is let in only while this waits, so
/// that one which comes a moment earlier is not slept over.
bool wait_for_input() {
  sigset_t interrupt, before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  pollfd input{STDIN_FILENO, POLLIN, 0};
  bool waits = true;
  while (waits && interrupts() == 0)
    waits = ::ppoll(&input, 1, nullptr, &before) < 0 && errno == EINTR;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return interrupts() == 0;
}

/// One character of standard input. libedit's own reader tries again after a signal; here an
/// interrupt ends the line.
int read_character(EditLine*, wchar_t* to) {
  std::mbstate_t state{};
  for (;;) {
    if (!wait_for_input()) return -1;
    char byte = 0;
    const auto n = ::read(STDIN_FILENO, &byte, 1);
    if (n < 0 && errno == EINTR) continue; // the window's size changed, or an interrupt came
    if (n <= 0) return n == 0 ? 0 : -1;
    const auto taken = std::mbrtowc(to, &byte, 1, &state);
    if (taken == static_cast<std::size_t>(-2)) continue; // more bytes of the character follow
    if (taken == static_cast<std::size_t>(-1)) *to = L'?';
    return 1;
  }
}

bool can_edit() {
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

} // namespace

class line_editor::terminal {
public:
  terminal(std::filesystem::path file, std::string prompt)
      : file_(std::move(file)), prompt_(std::move(prompt)) {
    // Characters of more than one byte need a locale that knows them.
    if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1)
      std::setlocale(LC_CTYPE, "C.UTF-8");
    edit_ = el_init("twill", stdin, stdout, stderr);
    history_ = history_init();
    HistEvent event{};
    history(history_, &event, H_SETSIZE, most_lines);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &terminal::prompt_of);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, &history, history_);
    el_set(edit_, EL_GETCFN, &read_character);
    el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(edit_, nullptr);
    if (!file_.empty()) history(history_, &event, H_LOAD, file_.c_str());
  }
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;
  ~terminal() {
    save();
    history_end(history_);
    el_end(edit_);
  }

  std::optional<std::string> read() {
    int length = 0;
    const char* line = el_gets(edit_, &length);
    if (line == nullptr || length <= 0) return std::nullopt;
    std::string text(line, static_cast<std::size_t>(length));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
      text.pop_back();
    HistEvent event{};
    if (text.find_first_not_of(" \t") != text.npos)
      history(history_, &event, H_ENTER, text.c_str());
    return text;
  }

private:
  static char* prompt_of(EditLine* edit) {
    terminal* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return self->prompt_.data();
  }

  void save() {
    if (file_.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(file_.parent_path(), ignored);
    const auto before = ::umask(077); // what was said is nobody else's business
    HistEvent event{};
    history(history_, &event, H_SAVE, file_.c_str());
    ::umask(before);
  }

  std::filesystem::path file_;
  std::string prompt_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
};

line_editor::line_editor(std::filesystem::path history, std::string prompt)
    : at_terminal_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1),
      prompt_(std::move(prompt)) {
  if (at_terminal_ && can_edit())
    terminal_ = std::make_unique<terminal>(std::move(history), prompt_);
}
line_editor::~line_editor() = default;

std::optional<std::string> line_editor::read() {
  if (terminal_ != nullptr) return terminal_->read();
  if (at_terminal_) {
    std::fputs(prompt_.c_str(), stdout);
    std::fflush(stdout);
  }
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  return line;
}

} // namespace twill::tools
