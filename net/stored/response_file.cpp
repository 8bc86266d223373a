#include "net/stored/response_file.hpp"

#include <limits>
#include <string_view>
#include <utility>

#include "net/stored/checksum.hpp"
#include "net/stored/little_endian.hpp"
#include "net/stored/preamble.hpp"

namespace twill::net {
namespace {

constexpr std::int64_t lengths_bytes = 4 + 4 * 8;
constexpr std::int64_t sum_bytes = 8;
constexpr std::size_t record_head_bytes = 4;

failure<std::error_code> refuse(std::errc why) {
  return {make_error_code(why), {}};
}

/// Reads the next `n` bytes of the source into `to` and advances `at`.
std::error_code read_next(byte_source& from, std::string& to, std::int64_t n, std::int64_t& at) {
  to.resize(static_cast<std::size_t>(n));
  const auto error = from.read(to.data(), to.size(), at);
  at += n;
  return error;
}

/// Splits the body of a response's file into its `n` records (stored events, each after its
/// length). Returns false if the body does not consist of exactly `n` records.
bool split_records(std::string_view body, std::uint64_t n, std::vector<std::string>& to) {
  if (n > body.size() / record_head_bytes) return false;
  to.reserve(static_cast<std::size_t>(n));
  for (std::uint64_t i = 0; i < n; ++i) {
    if (body.size() < record_head_bytes) return false;
    const auto bytes = get_integer<std::uint32_t>(body);
    body.remove_prefix(record_head_bytes);
    if (bytes > body.size()) return false;
    to.emplace_back(body.substr(0, bytes));
    body.remove_prefix(bytes);
  }
  return body.empty();
}

} // namespace

twill::result<std::string, std::error_code> response_file_bytes(const stored_bytes& whole) {
  std::size_t body_bytes = 0;
  for (const auto& record : whole.records) {
    if (record.size() > std::numeric_limits<std::uint32_t>::max())
      return refuse(std::errc::file_too_large);
    body_bytes += record_head_bytes + record.size();
  }
  std::string bytes = make_preamble(stored_kind::response);
  bytes.reserve(static_cast<std::size_t>(preamble_bytes + lengths_bytes + sum_bytes) +
                whole.id.size() + whole.head.size() + body_bytes);
  put_integer(bytes, static_cast<std::uint32_t>(whole.id.size()));
  put_integer(bytes, std::uint64_t{whole.head.size()});
  put_integer(bytes, std::uint64_t{whole.records.size()});
  put_integer(bytes, std::uint64_t{body_bytes});
  const auto body_sum_at = bytes.size();
  put_integer(bytes, std::uint64_t{0});
  bytes += whole.id;
  bytes += whole.head;
  const auto sum_at = bytes.size();
  put_integer(bytes, std::uint64_t{0});
  const auto body_at = bytes.size();
  for (const auto& record : whole.records) {
    put_integer(bytes, static_cast<std::uint32_t>(record.size()));
    bytes += record;
  }
  const std::string_view view = bytes;
  put_integer_at(bytes, body_sum_at,
                 stored_checksum(view.substr(body_at), static_cast<std::int64_t>(body_at)));
  constexpr auto begin = static_cast<std::size_t>(preamble_bytes);
  put_integer_at(bytes, sum_at,
                 stored_checksum(view.substr(begin, sum_at - begin), preamble_bytes));
  return bytes;
}

twill::result<response_beginning, std::error_code> read_response_beginning(byte_source& from) {
  constexpr std::int64_t least_bytes = preamble_bytes + lengths_bytes + sum_bytes;
  if (from.bytes() < preamble_bytes) return refuse(std::errc::bad_message);
  std::string bytes;
  std::int64_t at = 0;
  if (const auto error = read_next(from, bytes, preamble_bytes, at))
    return failure<std::error_code>{error, {}};
  switch (check_preamble(bytes, stored_kind::response)) {
  case preamble_state::right:
    break;
  case preamble_state::other_version:
    return refuse(std::errc::not_supported);
  case preamble_state::damaged:
    return refuse(std::errc::bad_message);
  }
  if (from.bytes() < least_bytes) return refuse(std::errc::bad_message);
  std::string summed;
  if (const auto error = read_next(from, summed, lengths_bytes, at))
    return failure<std::error_code>{error, {}};
  std::string_view lengths = summed;
  const auto id_bytes = get_integer<std::uint32_t>(lengths);
  const auto head_bytes = get_integer<std::uint64_t>(lengths.substr(4));
  response_beginning found;
  found.n_records = get_integer<std::uint64_t>(lengths.substr(12));
  const auto body_bytes = get_integer<std::uint64_t>(lengths.substr(20));
  found.body_sum = get_integer<std::uint64_t>(lengths.substr(28));
  // Each length is compared with the bytes that are left, instead of adding the lengths up, so that
  // a damaged length cannot cause an overflow.
  auto left = static_cast<std::uint64_t>(from.bytes() - least_bytes);
  for (const std::uint64_t part : {std::uint64_t{id_bytes}, head_bytes, body_bytes}) {
    if (part > left) return refuse(std::errc::bad_message);
    left -= part;
  }
  if (left != 0) return refuse(std::errc::bad_message);
  if (const auto error =
          read_next(from, bytes, static_cast<std::int64_t>(id_bytes + head_bytes) + sum_bytes, at))
    return failure<std::error_code>{error, {}};
  summed.append(bytes, 0, bytes.size() - sum_bytes);
  if (get_integer<std::uint64_t>(std::string_view(bytes).substr(bytes.size() - sum_bytes)) !=
      stored_checksum(summed, preamble_bytes))
    return refuse(std::errc::bad_message);
  found.id = bytes.substr(0, id_bytes);
  found.head = bytes.substr(id_bytes, bytes.size() - sum_bytes - id_bytes);
  found.body_at = at;
  if (!is_stored_id(found.id)) return refuse(std::errc::bad_message);
  return found;
}

twill::result<stored_bytes, std::error_code> read_response(byte_source& from) {
  auto beginning = read_response_beginning(from);
  if (!beginning.ok()) return beginning.error();
  auto& begun = beginning.value();
  std::string body;
  std::int64_t at = begun.body_at;
  if (const auto error = read_next(from, body, from.bytes() - at, at))
    return failure<std::error_code>{error, {}};
  stored_bytes whole{std::move(begun.id), std::move(begun.head), {}};
  if (stored_checksum(body, begun.body_at) != begun.body_sum ||
      !split_records(body, begun.n_records, whole.records))
    return refuse(std::errc::bad_message);
  return whole;
}

} // namespace twill::net
