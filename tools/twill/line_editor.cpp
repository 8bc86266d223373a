#include "tools/twill/line_editor.hpp"

#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <iostream>
#include <utility>

#include "tools/common/terminal.hpp"
#include "tools/twill/history_store.hpp"
#include "tools/twill/interrupt.hpp"
#include "tools/twill/word_wrap.hpp"

namespace twill::tools {
namespace {

constexpr int most_lines = 1000;
constexpr std::size_t most_kept_bytes = 64 * 1024; ///< limit on a line of the history file

// Bracketed paste: the terminal sends markers before and after pasted text.
constexpr const char *marks_on = "\x1b[?2004h", *marks_off = "\x1b[?2004l";
constexpr std::wstring_view paste_end = L"\x1b[201~";

volatile sig_atomic_t was_resized = 0;   ///< the terminal was resized
volatile sig_atomic_t was_continued = 0; ///< the program was continued after a stop

bool can_edit() {
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

/// How many rows below the first character of `text` its end is, on a terminal `columns` wide.
std::size_t rows_of(std::wstring_view text, std::size_t columns) {
  std::size_t rows = 0, width = 0;
  for (const wchar_t character : text) {
    if (character == L'\n') {
      rows += 1 + width / columns;
      width = 0;
    } else {
      width += static_cast<std::size_t>(std::max(::wcwidth(character), 0));
    }
  }
  return rows + width / columns;
}

/// The longest common beginning of the texts, cut at a whole character.
std::string common_beginning(const std::vector<std::string>& texts) {
  std::string common = texts.front();
  for (const auto& text : texts) {
    const auto differs = std::mismatch(common.begin(), common.end(), text.begin(), text.end());
    common.erase(differs.first, common.end());
  }
  const auto& first = texts.front();
  while (common.size() < first.size() && !common.empty() &&
         (static_cast<unsigned char>(first[common.size()]) & 0xc0) == 0x80)
    common.pop_back();
  return common;
}

} // namespace

class line_editor::terminal {
public:
  terminal(std::filesystem::path file, completer complete)
      : file_(std::move(file)), complete_(std::move(complete)) {
    struct sigaction action {};
    action.sa_handler = [](int) { was_resized = 1; };
    sigaction(SIGWINCH, &action, nullptr);
    action.sa_handler = [](int) { was_continued = 1; };
    sigaction(SIGCONT, &action, nullptr);
    edit_ = el_init("twill", stdin, stdout, stderr);
    history_ = new_history();
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &terminal::prompt_of);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, &history, history_);
    el_set(edit_, EL_GETCFN, &terminal::read_character);
    el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(edit_, nullptr);
    el_set(edit_, EL_ADDFN, "twill-complete", "complete a command", &terminal::on_tab);
    el_set(edit_, EL_ADDFN, "twill-paste", "take what is pasted as it is", &terminal::on_paste);
    el_set(edit_, EL_BIND, "^I", "twill-complete", nullptr);
    const char* keys = nullptr;
    el_get(edit_, EL_EDITOR, &keys);
    // A terminal sends ESC [200~ before pasted text. In vi's insert mode the ESC alone switches to
    // command mode, so the rest, [200~, is bound to the paste function in command mode.
    if (keys != nullptr && std::string_view(keys) == "vi")
      el_set(edit_, EL_BIND, "-a", "[200~", "twill-paste", nullptr);
    else
      el_set(edit_, EL_BIND, "\\e[200~", "twill-paste", nullptr);
    if (!file_.empty()) call(history_, H_LOAD, file_.c_str());
  }
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;
  ~terminal() {
    // Saves lines that could not be written earlier because another program held the lock.
    save();
    std::fputs(marks_off, stdout);
    std::fflush(stdout);
    history_end(history_);
    el_end(edit_);
  }

  line_read read(const std::string& prompt) {
    prompt_ = prompt;
    pasted_ = abandoned_ = false;
    // Bracketed paste, in which the terminal marks pasted text with escape sequences, stays enabled
    // during a reply, so that text pasted at that time becomes one message later.
    std::fputs(marks_on, stdout);
    std::fflush(stdout);
    was_resized = 0;
    was_continued = 0;
    columns_ = columns_of(stream::out);
    el_resize(edit_);
    int length = 0;
    const char* line = el_gets(edit_, &length);
    if (line == nullptr || length <= 0)
      return {abandoned_ ? line_read_kind::abandoned : line_read_kind::over, {}, false};
    std::string text(line, static_cast<std::size_t>(length));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
      text.pop_back();
    return {line_read_kind::line, std::move(text), pasted_};
  }

  void remember(const std::string& line) {
    call(history_, H_ENTER, line.c_str());
    if (file_.empty() || line.size() > most_kept_bytes) return;
    unsaved_.push_back(line);
    save();
  }

private:
  template <class... Arguments>
  static int call(History* of, int what, Arguments... arguments) {
    HistEvent event{};
    return history(of, &event, what, arguments...);
  }
  static History* new_history() {
    History* made = history_init();
    call(made, H_SETSIZE, most_lines);
    call(made, H_SETUNIQUE, 1);
    return made;
  }

  static terminal& of(EditLine* edit) {
    terminal* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return *self;
  }
  static char* prompt_of(EditLine* edit) { return of(edit).prompt_.data(); }

  /// Appends the unsaved lines to the current content of the history file, to which other programs
  /// may have added lines.
  void save() {
    if (unsaved_.empty()) return;
    const bool saved = replace_file(file_, [this](std::FILE* to) {
      History* all = new_history();
      call(all, H_LOAD, file_.c_str());
      for (const auto& line : unsaved_)
        call(all, H_ENTER, line.c_str());
      const bool written = call(all, H_SAVE_FP, to) >= 0;
      history_end(all);
      return written;
    });
    if (saved) unsaved_.clear();
  }

  /// Redraws the line when the terminal was resized, or when other text was shown while the program
  /// was stopped.
  void redraw_if_changed() {
    const bool resized = std::exchange(was_resized, 0) != 0;
    const bool continued = std::exchange(was_continued, 0) != 0;
    if (!resized && !continued) return;
    if (continued) {
      std::fputs(marks_on, stdout);
      // The shell has changed the terminal's modes while the program was stopped. libedit does not
      // notice, so the modes are set again.
      el_set(edit_, EL_PREP_TERM, 0);
      el_set(edit_, EL_PREP_TERM, 1);
    }
    const auto before = std::exchange(columns_, columns_of(stream::out));
    std::size_t up = 0;
    if (!continued && before > 0 && columns_ > 0) {
      // After a resize some terminals rewrap lines and some do not. Assuming the smaller number of
      // rows keeps the text above the line intact.
      const auto* line = el_wline(edit_);
      const std::wstring shown =
          std::wstring(prompt_.begin(), prompt_.end()) + std::wstring(line->buffer, line->cursor);
      up = std::min(rows_of(shown, before), rows_of(shown, columns_));
    }
    const std::string go_up = up > 0 ? "\x1b[" + std::to_string(up) + "A" : std::string();
    std::fprintf(stdout, "\r%s\x1b[J", go_up.c_str());
    el_resize(edit_);
    el_set(edit_, EL_REFRESH);
  }

  /// Waits until standard input can be read; returns false after an interrupt. Signals are blocked
  /// except during ppoll(), so that a signal that arrives just before the wait is not missed.
  bool wait_for_input() {
    sigset_t held, before;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT})
      sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before);
    pollfd input{STDIN_FILENO, POLLIN, 0};
    bool waits = true;
    while (waits && interrupts() == 0 && noted_ending() == 0) {
      redraw_if_changed();
      waits = ::ppoll(&input, 1, nullptr, &before) < 0 && errno == EINTR;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return interrupts() == 0 && noted_ending() == 0;
  }

  /// Returns the next byte of standard input, or -1 when there is none.
  int next_byte() {
    if (taken_ == n_bytes_) {
      taken_ = n_bytes_ = 0;
      for (;;) {
        if (!wait_for_input()) return -1;
        const auto n = ::read(STDIN_FILENO, bytes_.data(), bytes_.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        n_bytes_ = static_cast<std::size_t>(n);
        break;
      }
    }
    return static_cast<unsigned char>(bytes_[taken_++]);
  }

  /// Reads one character of standard input for libedit. Unlike libedit's own reader, which retries
  /// after a signal, this one ends the line on an interrupt.
  static int read_character(EditLine* edit, wchar_t* to) {
    auto& self = of(edit);
    std::mbstate_t state{};
    for (;;) {
      const int next = self.next_byte();
      if (next < 0) {
        const auto* line = el_wline(edit);
        self.abandoned_ = interrupts() > 0 && line->lastchar != line->buffer;
        return interrupts() > 0 || noted_ending() != 0 ? -1 : 0;
      }
      const char byte = static_cast<char>(next);
      const auto taken = std::mbrtowc(to, &byte, 1, &state);
      if (taken == static_cast<std::size_t>(-2)) continue; // more bytes of the character follow
      if (taken == static_cast<std::size_t>(-1)) *to = L'?';
      return 1;
    }
  }

  /// Inserts pasted text, including its newlines, into the line.
  static unsigned char on_paste(EditLine* edit, int) noexcept {
    auto& self = of(edit);
    const auto* line = el_wline(edit);
    if (line->cursor == line->buffer) self.pasted_ = true;
    std::wstring text;
    wchar_t next = 0;
    while (!text.ends_with(paste_end)) {
      if (el_wgetc(edit, &next) != 1) return CC_EOF;
      if (next != L'\0') text += next;
    }
    text.resize(text.size() - paste_end.size());
    // Terminals send carriage returns, as for the Enter key, instead of newlines.
    std::replace(text.begin(), text.end(), L'\r', L'\n');
    return text.empty() || el_winsertstr(edit, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  static unsigned char on_tab(EditLine* edit, int) noexcept {
    const auto* line = el_line(edit);
    const std::string begun(line->buffer, line->cursor);
    const auto found = of(edit).complete_(begun);
    if (found.empty())
      return begun.starts_with('/') || el_insertstr(edit, "\t") != 0 ? CC_ERROR : CC_REFRESH;
    const std::string common = common_beginning(found);
    if (common.size() > begun.size())
      return el_insertstr(edit, common.c_str() + begun.size()) == 0 ? CC_REFRESH : CC_ERROR;
    if (found.size() == 1) return CC_REFRESH;
    std::string all;
    for (const auto& one : found)
      all += one + (one.ends_with(' ') ? " " : "  ");
    std::fprintf(stdout, "\n%s\n", wrapped(all, columns_of(stream::out)).c_str());
    return CC_REDISPLAY;
  }

  std::filesystem::path file_;
  completer complete_;
  std::string prompt_;
  std::vector<std::string> unsaved_; ///< lines that are not yet in the history file
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
  std::array<char, 4096> bytes_; ///< bytes read from standard input
  std::size_t taken_ = 0, n_bytes_ = 0;
  bool pasted_ = false, abandoned_ = false;
  std::size_t columns_ = 0; ///< width of the terminal when the line was drawn
};

line_editor::line_editor(std::filesystem::path history, completer complete)
    : at_terminal_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) {
  if (at_terminal_ && can_edit())
    terminal_ = std::make_unique<terminal>(std::move(history), std::move(complete));
}
line_editor::~line_editor() = default;

line_read line_editor::read(const std::string& prompt) {
  if (terminal_ != nullptr) return terminal_->read(prompt);
  if (at_terminal_) {
    std::fputs(prompt.c_str(), stdout);
    std::fflush(stdout);
  }
  std::string line;
  if (!std::getline(std::cin, line)) return {line_read_kind::over, {}, false};
  return {line_read_kind::line, std::move(line), false};
}

void line_editor::remember(const std::string& line) {
  if (terminal_ != nullptr) terminal_->remember(line);
}

} // namespace twill::tools
