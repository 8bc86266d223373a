// stored_record: an event of a request as the bytes that are stored of it, and back. Pure.
//
// A record is a set of flags that say what the event has, then those parts: whole numbers as
// LEB128, floats as four bytes of the lowest value first, texts with their length before them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::net {

std::string write_record(const actors::event& ev);

/// Stands between the events of a response where another process went on with it.
std::string resume_mark();
bool is_resume_mark(std::string_view bytes);

/// What the events of a response have drawn so far, for a request that goes on with it.
struct drawn_so_far {
  std::vector<actors::made_choice> made; ///< an entry for each of `n_choices`
  std::string continuity;                ///< of the model that has drawn them
  bool started = false;
  bool over = false; ///< nothing is left to be drawn
  std::ptrdiff_t resumes = 0;
};
drawn_so_far read_drawn(const std::vector<std::string>& records, std::int32_t n_choices);

/// Nothing where the bytes are no whole event. Takes memory in proportion to the bytes alone.
std::optional<actors::event> read_record(std::string_view bytes);

} // namespace twill::net
