// batch: OpenAI's Batch object as data, its JSON, and the lines of its input and output files.
// Plain values and pure functions, any thread.
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
/// The status of this name, if there is one.
std::optional<batch_status> status_named(std::string_view name);
/// Whether a batch with this status never changes again.
bool is_final(batch_status status);

/// Why an input file is refused.
struct batch_fault {
  std::string code;
  std::string message;
  std::string param;
  std::int64_t line = 0; ///< counted from 1; 0: the fault is not in one line
};

struct batch {
  std::string id;
  std::int64_t number = 0; ///< higher than those of all batches that were made before it
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
  std::string output_under_way; ///< the output file's id while it is not published
  std::string errors_under_way; ///< the error file's
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

/// The custom_id of a whole line of an output or error file; none when it is damaged.
std::optional<std::string> answered_id(std::string_view line);

/// A line of an output or error file that holds an HTTP reply; `body` is JSON.
std::string reply_line(const std::string& custom_id, int status, std::string_view body);
/// A line of an error file for a request that was never answered.
std::string unanswered_line(const std::string& custom_id, std::string_view code,
                            std::string_view message);

} // namespace twill::net
