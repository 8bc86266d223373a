// batch_description: converts a batch to the text of its file in `batches.folder`, and back. The
// functions are pure, and any thread may call them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/batch/batch.hpp"

namespace twill::net {

/// The most bytes of a batch description, the text of a batch's file. No description becomes
/// larger, because batch_service::create() limits what clients send and batch_input::check()
/// reports at most 100 faults of the input file.
inline constexpr std::size_t max_batch_description_bytes = 1024 * 1024;

/// Returns all members of a batch as JSON.
std::string describe_batch(const batch& record);

/// Reads a text that describe_batch() wrote. Fails with errc::bad_json if it is not JSON, or with
/// errc::invalid_field and the name of the member that breaks a rule. Every batch that is returned
/// is safe to use: its ids are not paths, its endpoint is served, and its times and counts are
/// within bounds.
result<batch> read_description(std::string_view text);

/// Returns whether `name` is `prefix` followed by 1 to 96 letters, digits, dots, dashes and
/// underscores. Such a name is never a path.
bool is_id(std::string_view name, std::string_view prefix);

} // namespace twill::net
