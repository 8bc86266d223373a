// standard_streams: makes sure that standard input, output and error are open. Otherwise another
// file could get one of their descriptors, and log lines would be written into that file.
//
// Every program calls open_missing_standard_streams() first in main(), before it opens a file or
// begins a thread.
#pragma once

namespace twill {

/// Opens /dev/null for each of the descriptors 0 to 2 that is closed. Ends the process if that
/// fails, since nothing could then be written safely.
void open_missing_standard_streams();

} // namespace twill
