// batch: OpenAI's Batch object as a struct, its JSON form, and the parsing and writing of the lines
// of its input and output files. The types are plain values and the functions are pure, so any
// thread may use them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/base/value.hpp"
#include "net/api_error.hpp"
#include "net/batch/file_store.hpp"

namespace twill::net {

enum class batch_status : std::uint8_t {
  validating,
  in_progress,
  finalizing,
  completed,
  failed,
  expired,
  cancelling,
  cancelled,
};
inline constexpr std::size_t n_batch_statuses = 8;

const char* name_of(batch_status status);
/// Returns the status with this name, or nothing if there is none.
std::optional<batch_status> status_named(std::string_view name);
/// Returns whether a batch with this status never changes again.
bool is_final(batch_status status);

/// The reason why an input file is refused.
struct batch_fault {
  std::string code;
  std::string message;
  std::string param;
  std::int64_t line = 0; ///< line number, counted from 1; 0: the fault does not concern one line
};

struct batch {
  std::string id;
  std::int64_t number = 0; ///< greater than the number of every batch that was created earlier
  std::string tenant;
  std::string endpoint;
  std::string input_file_id;
  std::string completion_window;
  value metadata;
  batch_status status = batch_status::validating;
  std::array<std::int64_t, n_batch_statuses> reached_unix_s{}; ///< when each status was reached
  std::int64_t expires_unix_s = 0;
  std::int64_t total = 0;
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::string output_file_id;
  std::string error_file_id;
  std::string output_under_way; ///< id of the output file until it is published
  std::string errors_under_way; ///< id of the error file until it is published
  std::vector<batch_fault> faults;

  void reach(batch_status next);
};

std::string batch_json(const batch& record);
std::string file_json(const stored_file& file);

/// One request of an input file.
struct batch_line {
  std::string custom_id;
  value body;
};

std::variant<batch_line, batch_fault> parse_batch_line(std::string_view text,
                                                       std::string_view endpoint);

/// Returns the custom_id of a complete line of an output or error file, or nothing if the line is
/// damaged.
std::optional<std::string> answered_id(std::string_view line);

/// Makes a line of an output or error file from an HTTP reply. `body` must be JSON.
std::string reply_line(const std::string& custom_id, int status, std::string_view body);
/// Makes a line of an error file for a request that got no reply.
std::string unanswered_line(const std::string& custom_id, std::string_view code,
                            std::string_view message);

} // namespace twill::net
