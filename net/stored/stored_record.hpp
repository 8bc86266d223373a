// stored_record: encodes an event of a request as the bytes of a stored record, and decodes it. The
// functions are pure.
//
// A record begins with a set of flags that say which parts the event has. Those parts follow:
// integers as LEB128, floats as four bytes with the lowest byte first, and strings after their
// length.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::net {

std::string write_record(const actors::event& ev);

/// Returns a record that is no event. Among the stored events of a response it marks the place
/// where a new process has continued the response.
std::string resume_mark();
bool is_resume_mark(std::string_view bytes);

/// The state that the stored events of a response have reached, for a request that continues it.
struct drawn_so_far {
  std::vector<actors::made_choice> made; ///< one entry for each of `n_choices`
  /// The `continuity` value of the model that generated the tokens.
  std::string continuity;
  bool started = false;
  bool over = false;          ///< no more tokens have to be generated
  std::ptrdiff_t resumes = 0; ///< number of resume marks among the records
};
drawn_so_far read_drawn(const std::vector<std::string>& records, std::int32_t n_choices);

/// Returns nothing if the bytes are not a complete event, for example if they are a resume mark.
/// The memory use is proportional to the size of `bytes`.
std::optional<actors::event> read_record(std::string_view bytes);

} // namespace twill::net
