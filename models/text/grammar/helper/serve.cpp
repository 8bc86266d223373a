#include "models/text/grammar/helper/serve.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <utility>

#include "models/text/grammar/compiled_grammar.hpp"
#include "models/text/grammar/helper/request.hpp"
#include "models/text/grammar/spec_text.hpp"
#include "models/text/grammar/trial.hpp"

namespace twill::models::grammar {
namespace {

std::string read_all(int fd) {
  std::string out;
  char block[65536];
  for (ssize_t n; (n = ::read(fd, block, sizeof block)) > 0;)
    out.append(block, static_cast<std::size_t>(n));
  return out;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::write(fd, bytes.data(), bytes.size());
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

#ifndef __SANITIZE_ADDRESS__ // AddressSanitizer reserves too much address space for a limit
/// Returns the bytes of address space that are in use now.
std::int64_t address_space() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * ::sysconf(_SC_PAGESIZE);
}
#endif

void limit(int what, std::int64_t most) {
  const rlimit bound{static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
  ::setrlimit(static_cast<__rlimit_resource>(what), &bound);
}

/// Makes SIGPROF end the process once it has used `ms` milliseconds of processor time from now on.
void limit_processor_time(std::int64_t ms) {
  // The helper may have inherited the daemon's handling of SIGPROF, so the default is restored.
  std::signal(SIGPROF, SIG_DFL);
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGPROF);
  ::sigprocmask(SIG_UNBLOCK, &ours, nullptr);
  itimerval bound{};
  bound.it_value.tv_sec = ms / 1000;
  bound.it_value.tv_usec = ms % 1000 * 1000;
  ::setitimer(ITIMER_PROF, &bound, nullptr);
}

result<std::string> compiled(const helper_request& request) {
  try {
    const auto text = grammar_text(request.spec, request.repeated_items);
    if (!text.ok()) return text.error();
    const auto tokens = make_vocabulary(request.token_bytes, request.end_ids);
    const auto grammar = compile_here(text.value(), tokens, writes_json(request.spec));
    if (!grammar.ok()) return grammar.error();
    if (auto slow = try_masks(grammar.value())) return *std::move(slow);
    return text;
  } catch (const std::bad_alloc&) {
    return failure{errc::out_of_memory,
                   "compiling the grammar took more memory than structured.compile_memory"};
  }
}

} // namespace

int serve_one_request(int request_fd, int answer_fd) {
  // The helper is killed when the daemon ends, writes no core file, and has a lower priority than
  // the daemon.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_CORE, 0);
  if (::nice(5) == -1) {
    // The lower priority only spares other processes: if nice() fails, the limits still hold.
  }
  auto request = decoded_request(read_all(request_fd));
  if (!request) return 2;
#ifndef __SANITIZE_ADDRESS__
  if (request->memory_bytes > 0) limit(RLIMIT_AS, address_space() + request->memory_bytes);
#endif
  if (request->cpu_ms > 0) limit_processor_time(request->cpu_ms);
  return write_all(answer_fd, encoded_answer(compiled(*request))) ? 0 : 1;
}

} // namespace twill::models::grammar
