// Colours and text that are safe to write to a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace twill::tools {

enum class stream { out, error };
enum class ink { dim, bold, red, green };

/// True when the stream is a terminal that shows colour (NO_COLOR unset, TERM not "dumb").
bool has_colour(stream s);
bool is_terminal(stream s);

/// How many columns the terminal has now; 0: the stream is none, or it does not tell.
std::size_t columns_of(stream s);

/// `text` in that ink, or as it is when the stream shows none.
std::string painted(stream s, ink colour, std::string_view text);

/// Text that a server sent, made harmless: control characters but newline and tab become U+FFFD.
std::string printable(std::string_view text);

/// Writes to standard output and flushes: to a terminal as printable(), to a file or pipe
/// unchanged.
void write_out(std::string_view text);

} // namespace twill::tools
