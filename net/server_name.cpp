#include "net/server_name.hpp"

#include <optional>

#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

constexpr std::size_t n_digits = 24;
constexpr std::size_t max_name_chars = 32;
/// Limit of the part of an id that a message shows; longer than any id that a server makes.
constexpr std::size_t max_shown_chars = 96;

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Whether `text` is a valid `server.name`.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= max_name_chars &&
         text.find_first_not_of(
             "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-") ==
             std::string_view::npos;
}

/// The server name within the id, which may be empty; nothing where the id has another form.
std::optional<std::string_view> read_name(id_kind kind, std::string_view id) {
  if (!id.starts_with(kind.prefix)) return std::nullopt;
  id.remove_prefix(kind.prefix.size());
  if (id.size() < n_digits || !is_hex(id.substr(id.size() - n_digits))) return std::nullopt;
  id.remove_suffix(n_digits);
  if (id.empty()) return id;
  if (id.back() != '.' || !is_name(id.substr(0, id.size() - 1))) return std::nullopt;
  return id.substr(0, id.size() - 1);
}

std::string quoted(std::string_view name) {
  return "\"" + std::string(name) + "\"";
}

std::string shown(std::string_view id) {
  return describe(value(std::string(id)), max_shown_chars);
}

/// The name of another server that made the id; empty where the id names no other server.
std::string_view other_server(id_kind kind, std::string_view id, std::string_view own) {
  const auto name = server_named_in(kind, id);
  return name == own ? std::string_view() : name;
}

constexpr const char* no_name = "no name (`server.name`)";

std::string names_other(std::string_view other) {
  return "the id names the server " + quoted(other);
}

} // namespace

bool is_id_of(id_kind kind, std::string_view id) {
  return read_name(kind, id).has_value();
}

std::string_view server_named_in(id_kind kind, std::string_view id) {
  return read_name(kind, id).value_or(std::string_view());
}

std::string describe_absent(id_kind kind, std::string_view id, std::string_view own,
                            std::string_view hint) {
  const auto other = other_server(kind, id, own);
  auto out = "there is no " + std::string(kind.noun) + " " + shown(id);
  if (!own.empty()) out += " on this server, " + quoted(own);
  if (other.empty()) return out + "; " + std::string(hint);
  if (own.empty()) out += std::string(" on this server, which has ") + no_name;
  return out + ": " + names_other(other) + "; send the request there";
}

std::string describe_unknown_value(id_kind kind, std::string_view id, std::string_view own) {
  const auto other = other_server(kind, id, own);
  auto out = shown(id);
  if (!own.empty()) out += "; this server is " + quoted(own);
  if (other.empty()) return out;
  if (own.empty()) out += std::string("; this server has ") + no_name;
  return out + ", and " + names_other(other) + ": send the request there";
}

} // namespace twill::net
