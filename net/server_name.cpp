#include "net/server_name.hpp"

#include <cstddef>

namespace twill::net {
namespace {

constexpr std::size_t n_digits = 24;
constexpr std::size_t max_name_chars = 32;

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Whether `server.name` may be this.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= max_name_chars &&
         text.find_first_not_of(
             "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-") ==
             std::string_view::npos;
}

} // namespace

bool is_id_of(id_kind kind, std::string_view id) {
  if (!id.starts_with(kind.prefix)) return false;
  id.remove_prefix(kind.prefix.size());
  if (id.size() < n_digits || !is_hex(id.substr(id.size() - n_digits))) return false;
  id.remove_suffix(n_digits);
  return id.empty() || (id.back() == '.' && is_name(id.substr(0, id.size() - 1)));
}

} // namespace twill::net
