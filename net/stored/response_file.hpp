// response_file: the byte format of the file of one finished response. The file holds the head
// (what was requested, see stored_head) and the records (the events, see stored_record). Any thread
// may call the functions, but only one thread at a time may read a source.
//
// The file is: preamble; length of the id in bytes (u32), length of the head (u64), number of
// records (u64), length of the body (u64), checksum of the body (u64); id; head; checksum of
// everything between the preamble and this checksum (u64); body. The body holds each record after
// its length in bytes (u32). Everything before the body can be read and checked without the body.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>

#include "config/base/result.hpp"
#include "net/stored/byte_source.hpp"
#include "net/stored/stored_bytes.hpp"

namespace twill::net {

/// Returns the content of the file. Fails with file_too_large if a record has 4 GiB or more.
twill::result<std::string, std::error_code> response_file_bytes(const stored_bytes& whole);

struct response_beginning {
  std::string id;
  std::string head;
  std::uint64_t n_records = 0;
  std::int64_t body_at = 0; ///< offset of the body, which reaches to the end of the file
  std::uint64_t body_sum = 0;
};

// read_response_beginning() and read_response() fail with bad_message if the bytes are damaged,
// with not_supported if they are of another version of the format, and with the source's error if
// reading fails. A length that is larger than the source is treated as damage.
twill::result<response_beginning, std::error_code> read_response_beginning(byte_source& from);
twill::result<stored_bytes, std::error_code> read_response(byte_source& from);

} // namespace twill::net
