// batch_description: a batch as the text of its file in `batches.folder`, and back. Pure functions,
// any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/batch/batch.hpp"

namespace twill::net {

/// A description is not larger: create() bounds what clients give, batch_input the faults.
inline constexpr std::size_t max_batch_description_bytes = 1024 * 1024;

/// All members of a batch, as JSON.
std::string describe_batch(const batch& record);

/// Reads what describe_batch() wrote. Fails with errc::bad_json, or errc::invalid_field and the
/// member that breaks a rule. Nothing in a batch that it returns can do harm: the ids are no paths,
/// the endpoint is served, times and counts are within bounds.
result<batch> read_description(std::string_view text);

/// Whether a name is PREFIX and 1 to 96 letters, digits, dots, dashes and underscores, so that it
/// is never a path.
bool is_id(std::string_view name, std::string_view prefix);

} // namespace twill::net
