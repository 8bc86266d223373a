// What may be written to a terminal: colour only where it is one.
#pragma once

#include <string>
#include <string_view>

namespace twill::tools {

enum class stream { out, error };
enum class ink { dim, bold, red, green };

/// True when the stream is a terminal that shows colour (NO_COLOR unset, TERM not "dumb").
bool has_colour(stream s);
bool is_terminal(stream s);

/// `text` in that ink, or as it is when the stream shows none.
std::string painted(stream s, ink colour, std::string_view text);

/// Text from elsewhere made harmless: control characters but newline and tab become U+FFFD.
std::string printable(std::string_view text);

/// To standard output at once: to a terminal as printable(), to a file or pipe as it is.
void write_out(std::string_view text);

} // namespace twill::tools
