#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "config/base/units.hpp"
#include "models/offload/streams/io_pool.hpp"
#include "tools/twill-bench/commands.hpp"
#include "tools/twill-bench/disk/reader.hpp"
#include "tools/twill-bench/engine/held_signals.hpp"

namespace twill::bench {
namespace {

using clock = std::chrono::steady_clock;

struct disk_arguments {
  disk_reading settings;
  double seconds = 3;
  std::string samples;
};

double seconds_of(clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

std::runtime_error unwritable(const std::string& file) {
  return std::runtime_error("`--samples` must be a file that can be written, got " + file);
}

int measure(const disk_arguments& a) {
  const held_signals signals;
  std::ofstream samples;
  if (!a.samples.empty()) {
    samples.open(a.samples);
    if (!(samples << "at,bytes\n")) throw unwritable(a.samples);
  }
  disk_reader reader(a.settings);
  std::int64_t stored = 0;
  for (const stored_part& part : reader.parts())
    stored += part.bytes;
  std::printf("%s, %s of data, %d reads of up to %s under way\n", reader.describe().c_str(),
              format_bytes(stored).c_str(), a.settings.readers,
              format_bytes(models::offload::transfer_bytes).c_str());
  std::fflush(stdout);
  auto now = clock::now();
  std::int64_t bytes = reader.bytes();
  const auto note = [&] {
    if (!samples.is_open()) return;
    char line[64];
    std::snprintf(line, sizeof line, "%.6f,%lld\n", seconds_of(now.time_since_epoch()),
                  static_cast<long long>(bytes));
    samples << line;
  };
  note();
  const auto began = now;
  const std::int64_t before = bytes;
  do {
    const bool ended = signals.came_within(std::chrono::milliseconds(5));
    now = clock::now();
    bytes = reader.bytes();
    note();
    if (ended) break;
  } while (seconds_of(now - began) < a.seconds && reader.error().empty());
  if (!reader.error().empty()) throw std::runtime_error(reader.error());
  std::printf("%.2f GB/s\n", 1e-9 * static_cast<double>(bytes - before) / seconds_of(now - began));
  if (!a.samples.empty() && !samples.flush()) throw unwritable(a.samples);
  return 0;
}

} // namespace

void add_disk_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "disk",
      "Measures a disk: reads a file as offloading reads its disk tier, and does nothing else.");
  auto a = std::make_shared<disk_arguments>();
  CLI::Option* file = command->add_option(
      "--file", a->settings.file,
      "Reads this file, only where it holds data, instead of writing a file of its own.");
  command
      ->add_option("--dir", a->settings.dir,
                   "The folder of the file that is written and read (default: the folder of "
                   "temporary files).")
      ->excludes(file);
  command->add_flag_callback(
      "--cached", [a] { a->settings.direct = false; },
      "Reads through the page cache instead of around it.");
  command->add_option("--size", a->settings.file_mib, "The size of the file in MiB (default: 256).")
      ->check(CLI::Range(1, 1 << 20))
      ->excludes(file);
  command
      ->add_option("--readers", a->settings.readers,
                   "The number of reads under way at once (default: 4).")
      ->check(CLI::Range(1, 64));
  command
      ->add_option("--seconds", a->seconds,
                   "Reads for this many seconds, or until SIGINT or SIGTERM (default: 3).")
      ->check(CLI::Range(0.01, 86400.0));
  command->add_option("--samples", a->samples,
                      "Writes a CSV file with a line every 5 ms: seconds of the monotonic clock, "
                      "and bytes read so far.");
  command->callback([a, &exit_code] { exit_code = measure(*a); });
}

} // namespace twill::bench
