// hostile_files: what must hold of any bytes that stand where a journal or the file of a response
// should be. For the tests, and for the fuzz target stored_journal.
#pragma once

#include <string>
#include <string_view>

namespace twill::testing {

/// The journal or response file with checksums, and lengths of frames, that fit its bytes: what
/// random damage seldom gets past is past.
std::string with_right_sums(std::string journal_or_response);

/// Reads the bytes as a journal and as a response; what does not hold, or nullptr.
const char* broken_promise(std::string_view bytes);

/// A journal of some frames, and a response, as they are written.
std::string sample_journal();
std::string sample_response();

} // namespace twill::testing
