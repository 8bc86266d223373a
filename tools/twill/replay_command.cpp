// `twill replay FILE`: runs the scheduler again on the inputs recorded in a trace.
#include <CLI/CLI.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "actors/trace/replay.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"

namespace twill::tools {
namespace {

int unreadable(const std::string& why) {
  std::fprintf(stderr, "%s %s\n", painted(stream::error, ink::red, "twill:").c_str(),
               printable(why).c_str());
  return status_usage;
}

int replay_file(const std::string& path) {
  using verdict = actors::replay_outcome::verdict;
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0)
    return unreadable("cannot read " + path + ": " + std::strerror(errno));
  std::ifstream file(path, std::ios::binary);
  if (!S_ISREG(found.st_mode) || !file)
    return unreadable("cannot read " + path + ": it must be a file that `scheduler.trace` wrote");
  const auto outcome = actors::replay(file);
  const std::string where = path + ":" + std::to_string(outcome.line) + ": ";
  if (outcome.what_came == verdict::unreadable) return unreadable(where + outcome.what);
  if (outcome.what_came == verdict::different) {
    std::printf("another decision at %s%s\n", printable(where).c_str(),
                printable(outcome.what).c_str());
    return status_failure;
  }
  if (outcome.cut) std::printf("the last line is not whole and was left out\n");
  std::printf("the same decisions: %llu of %llu scheduler%s about %llu requests\n",
              static_cast<unsigned long long>(outcome.decisions),
              static_cast<unsigned long long>(outcome.schedulers),
              outcome.schedulers == 1 ? "" : "s",
              static_cast<unsigned long long>(outcome.requests));
  return status_ok;
}

} // namespace

void add_replay(CLI::App& root, int& status) {
  auto* command = root.add_subcommand("replay", "decide again as a scheduler's trace tells");
  command->description(
      "Has the scheduler of this program decide again about what a trace (`scheduler.trace`) says "
      "it "
      "saw. Exit status: 0 the same decisions, 1 another decision, 2 no trace that can be read.");
  auto path = std::make_shared<std::string>();
  command->add_option("FILE", *path, "the file that `scheduler.trace` named")->required();
  command->callback([path, &status] { status = replay_file(*path); });
}

} // namespace twill::tools
