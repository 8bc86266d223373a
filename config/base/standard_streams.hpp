// standard_streams: makes sure that standard input, output and error are open, so that no other
// file gets their descriptors and, with them, what is written to the log.
//
// Every program calls it first in main(), before it opens a file or begins a thread.
#pragma once

namespace twill {

/// Opens /dev/null in the place of each of the descriptors 0 to 2 that is closed. Ends the process
/// where that is impossible, since nothing could be written safely.
void open_missing_standard_streams();

} // namespace twill
