// hostile_files: what must hold when arbitrary bytes are read as the journal of running responses
// or as the file of a finished response. It is used by tests and by the fuzz target stored_journal.
#pragma once

#include <string>
#include <string_view>

namespace twill::testing {

/// The journal or response file with checksums and frame lengths corrected to fit its bytes. Random
/// damage then reaches the checks that follow the checks of checksums.
std::string with_right_sums(std::string journal_or_response);

/// Reads the bytes as a journal and as a response. Returns what does not hold, or nullptr.
const char* broken_promise(std::string_view bytes);

/// A journal of some frames, and a response, as they are written.
std::string sample_journal();
std::string sample_response();

} // namespace twill::testing
