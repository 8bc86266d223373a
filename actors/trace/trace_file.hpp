// trace_file: the file that `scheduler.trace` names. All schedulers of a process write to it, each
// as a stream with a number of its own.
//
// Any thread. The file has mode 0600 and must be a regular file and no link, since it reveals who
// asked for how much, and when. It never grows beyond its bound: lines that do not fit are left
// out, from then on for all streams, and the log says so once. A write error is handled in the same
// way; serving continues.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "actors/port/engine_port.hpp"
#include "actors/trace/trace_sink.hpp"

namespace twill::actors {

class trace_file {
public:
  /// Begins a new file. An existing file is kept as PATH.1 and replaces an older one of that name.
  static result<std::shared_ptr<trace_file>> open(const std::string& path, std::int64_t max_bytes);
  /// The file of this process, opened by the first caller.
  static result<std::shared_ptr<trace_file>> of_process(const std::string& path,
                                                        std::int64_t max_bytes);
  ~trace_file();
  trace_file(const trace_file&) = delete;
  trace_file& operator=(const trace_file&) = delete;

  /// The number of a new stream.
  std::uint64_t add_stream();
  /// Appends whole lines.
  void append(std::string_view lines);

private:
  trace_file(int fd, std::string path, std::int64_t max_bytes)
      : fd_(fd), path_(std::move(path)), max_bytes_(max_bytes) {}
  void stop(const std::string& why);

  std::mutex mutex_; ///< guards the members below
  int fd_;
  std::string path_;
  std::int64_t max_bytes_;
  std::int64_t bytes_ = 0;
  std::uint64_t streams_ = 0;
  bool stopped_ = false;
};

/// Writes one stream, which has the lines of one scheduler. Lines are buffered until no step is
/// under way or the buffer is large. One thread at a time.
class trace_stream final : public trace_sink {
public:
  explicit trace_stream(std::shared_ptr<trace_file> file)
      : file_(std::move(file)), number_(file_->add_stream()) {}
  ~trace_stream() override { rested(); }
  trace_stream(const trace_stream&) = delete;
  trace_stream& operator=(const trace_stream&) = delete;

  void saw(std::chrono::nanoseconds at, std::string_view body) override { add(at, body); }
  void decided(std::chrono::nanoseconds at, std::string_view body) override { add(at, body); }
  void rested() override;

private:
  void add(std::chrono::nanoseconds at, std::string_view body);

  std::shared_ptr<trace_file> file_;
  std::uint64_t number_;
  std::string lines_;
};

} // namespace twill::actors
