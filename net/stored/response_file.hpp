// response_file: the bytes of the file of one response that is over. Any thread; a source is read
// by one at a time.
//
// preamble; n bytes of id (u32), of head (u64), number of records (u64), bytes of the body (u64),
// checksum of the body (u64); id; head; checksum of all this after the preamble (u64); body: each
// record after its length (u32). So the beginning can be read and checked without the body.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>

#include "config/base/result.hpp"
#include "net/stored/byte_source.hpp"
#include "net/stored/stored_bytes.hpp"

namespace twill::net {

/// Fails with file_too_large where a record has 4 GiB or more.
twill::result<std::string, std::error_code> response_file_bytes(const stored_bytes& whole);

struct response_beginning {
  std::string id;
  std::string head;
  std::uint64_t n_records = 0;
  std::int64_t body_at = 0; ///< the body is all from here
  std::uint64_t body_sum = 0;
};

// Both fail with bad_message for bytes that are not what was written, with not_supported for those
// of another version of the format, and as reading fails. No length is believed that the source
// does not have.
twill::result<response_beginning, std::error_code> read_response_beginning(byte_source& from);
twill::result<stored_bytes, std::error_code> read_response(byte_source& from);

} // namespace twill::net
