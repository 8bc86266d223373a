// The rules that rows of the key table use, and how values are written in errors and in TOML.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "config/detail/keys.hpp"

namespace twill::config::detail {

rule any_path();
/// Printable text without line breaks, at most 256 bytes; may be empty.
rule any_name();
/// A name that ids carry: 1 to 32 of A-Z a-z 0-9 -, or empty.
rule id_name_or_none();
rule either();
rule one_of(std::initializer_list<const char*> words);
rule between(std::int64_t low, std::int64_t high);
/// For a key that is a number: within the range, or -1, which leaves the value to the model.
rule own_or_between(double low, double high);
rule bytes_between(std::int64_t low, std::int64_t high);
rule time_between(milliseconds low, milliseconds high);
rule power_of_two_between(std::int64_t low, std::int64_t high);
/// Each "host:port", "1.2.3.4:80", "[::1]:80" or "unix:/path"; port 0..65535; at least one.
rule addresses();
/// One such address, or empty.
rule address_or_none();
rule address_port_or_none();
/// "http://HOST[:PORT][/PATH]", the same with https, "unix:/PATH", or empty.
rule url_or_none();
/// What a ZeroMQ publisher binds: "tcp://ADDRESS:PORT", of IPv4, [IPv6] or * for all, or empty.
rule zmq_endpoint_or_none();
/// For a key that is a number: from 0 to 1.
rule share();
/// Each "Name: value".
rule header_lines();
/// Each an IP address, "address/bits" or "unix".
rule networks();
/// Non-empty entries of visible ASCII.
rule list_of_words();

/// `text` in double quotes with TOML's escapes, on one line.
std::string quote(std::string_view text);
/// The shortest text that reads back as `number`: "0.2", "-1".
std::string exact_number(double number);
/// "16 MiB" where that is exact, else plain bytes.
std::string exact_bytes(std::int64_t bytes);
/// "5m", "30s", "500ms": the largest unit that is exact.
std::string exact_time(std::int64_t milliseconds);

} // namespace twill::config::detail
