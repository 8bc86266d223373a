// terminal: coloured output, and making text safe to write to a terminal.
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

/// The current width of the terminal in columns; 0 when the stream is no terminal or the terminal
/// does not report its width.
std::size_t columns_of(stream s);

/// `text` in the given colour, or unchanged when the stream shows no colours.
std::string painted(stream s, ink colour, std::string_view text);

/// Makes text from a server harmless: every control character except newline and tab is replaced by
/// U+FFFD.
std::string printable(std::string_view text);

/// Writes the text to standard output and flushes. A terminal receives printable(text), a file or
/// pipe the unchanged text.
void write_out(std::string_view text);

} // namespace twill::tools
