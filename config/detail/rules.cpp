#include "config/detail/rules.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <vector>

#include "config/base/ip_network.hpp"
#include "config/base/units.hpp"

namespace twill::config::detail {
namespace {

const std::string& text_of(const key_value& v) {
  return std::get<std::string>(v);
}
std::int64_t number_of(const key_value& v) {
  return std::get<std::int64_t>(v);
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

rule number_between(std::int64_t low, std::int64_t high, std::string words) {
  return {std::move(words),
          [=](const key_value& v) { return number_of(v) >= low && number_of(v) <= high; }};
}

bool is_host_and_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || host.size() > 255) return false;
  for (char c : host) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '.' || c == '-' || c == '_';
    if (!plain && !(bracketed && (c == ':' || c == '%'))) return false;
  }
  unsigned number = 0;
  const char* end = port.data() + port.size();
  const auto [rest, error] = std::from_chars(port.data(), end, number);
  return error == std::errc{} && rest == end && number <= 65535;
}

/// The path of a Unix socket: absolute, and as long as the system allows.
bool is_unix_path(std::string_view text) {
  constexpr std::string_view prefix = "unix:/";
  constexpr std::size_t longest = 107;
  return text.starts_with(prefix) && text.size() > prefix.size() &&
         text.size() - prefix.size() + 1 <= longest &&
         std::none_of(text.begin(), text.end(), is_control);
}

} // namespace

rule any_path() {
  return {"a path without control characters", [](const key_value& v) {
            return std::none_of(text_of(v).begin(), text_of(v).end(), is_control);
          }};
}

rule any_name() {
  return {"at most 256 bytes without control characters", [](const key_value& v) {
            const auto& text = text_of(v);
            return text.size() <= 256 && std::none_of(text.begin(), text.end(), is_control);
          }};
}

rule id_name_or_none() {
  return {"1 to 32 characters of A-Z, a-z, 0-9 and -, or empty", [](const key_value& v) {
            const auto& text = text_of(v);
            return text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
                     return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                            (c >= 'A' && c <= 'Z') || c == '-';
                   });
          }};
}

rule either() {
  return {"true or false", [](const key_value&) { return true; }};
}

rule one_of(std::initializer_list<const char*> words) {
  const std::vector<std::string> allowed(words.begin(), words.end());
  std::string listed;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (i > 0) listed += i + 1 == allowed.size() ? " or " : ", ";
    listed += quote(allowed[i]);
  }
  return {listed, [allowed](const key_value& v) {
            return std::find(allowed.begin(), allowed.end(), text_of(v)) != allowed.end();
          }};
}

rule between(std::int64_t low, std::int64_t high) {
  return number_between(low, high,
                        "between " + std::to_string(low) + " and " + std::to_string(high));
}

rule own_or_between(double low, double high) {
  return {"between " + exact_number(low) + " and " + exact_number(high) + ", or -1",
          [=](const key_value& v) {
            const double number = std::get<double>(v); // NaN fails every comparison
            return number == -1 || (number >= low && number <= high);
          }};
}

rule bytes_between(std::int64_t low, std::int64_t high) {
  return number_between(low, high, "between " + exact_bytes(low) + " and " + exact_bytes(high));
}

rule time_between(milliseconds low, milliseconds high) {
  return number_between(low.count(), high.count(),
                        "between " + exact_time(low.count()) + " and " + exact_time(high.count()));
}

rule power_of_two_between(std::int64_t low, std::int64_t high) {
  return {"a power of two between " + std::to_string(low) + " and " + std::to_string(high),
          [=](const key_value& v) {
            const std::int64_t n = number_of(v);
            return n >= low && n <= high && (n & (n - 1)) == 0;
          }};
}

rule addresses() {
  return {"HOST:PORT or unix:/PATH, or a list of such addresses", [](const key_value& v) {
            const auto& list = std::get<std::vector<std::string>>(v);
            return !list.empty() && std::all_of(list.begin(), list.end(), [](const auto& one) {
              return is_unix_path(one) || is_host_and_port(one);
            });
          }};
}

rule address_or_none() {
  return {"HOST:PORT, unix:/PATH or empty", [](const key_value& v) {
            const auto& one = std::get<std::string>(v);
            return one.empty() || is_unix_path(one) || is_host_and_port(one);
          }};
}

rule address_port_or_none() {
  return {"PORT (of 127.0.0.1), HOST:PORT, unix:/PATH or empty", [](const key_value& v) {
            const auto& one = std::get<std::string>(v);
            return one.empty() || is_unix_path(one) || is_host_and_port(one) ||
                   is_host_and_port("127.0.0.1:" + one);
          }};
}

rule zmq_endpoint_or_none() {
  return {"tcp://ADDRESS:PORT (ADDRESS is one of IPv4, [IPv6] or *) or empty",
          [](const key_value& v) {
            std::string_view text = text_of(v);
            if (text.empty()) return true;
            if (!text.starts_with("tcp://")) return false;
            text.remove_prefix(6);
            const auto address = text.substr(0, text.rfind(':'));
            const bool plain = address == "*" || address.starts_with('[') ||
                               address.find_first_not_of("0123456789.") == std::string_view::npos;
            if (address == "*") text.remove_prefix(1);
            return plain &&
                   is_host_and_port(address == "*" ? "0" + std::string(text) : std::string(text));
          }};
}

rule url_or_none() {
  return {"http://HOST:PORT, https://HOST:PORT, unix:/PATH or empty", [](const key_value& v) {
            std::string_view text = text_of(v);
            if (text.empty() || is_unix_path(text)) return true;
            const std::string_view scheme = text.starts_with("https://") ? "https://" : "http://";
            if (!text.starts_with(scheme)) return false;
            text.remove_prefix(scheme.size());
            if (!std::all_of(text.begin(), text.end(), [](char c) { return c > 32 && c < 127; }))
              return false;
            const auto host = text.substr(0, text.find('/'));
            return is_host_and_port(host) || is_host_and_port(std::string(host) + ":1");
          }};
}

rule share() {
  return {"between 0 and 1", [](const key_value& v) {
            const double number = std::get<double>(v); // NaN fails every comparison
            return number >= 0 && number <= 1;
          }};
}

rule header_lines() {
  return {"a list of header lines \"Name: value\"", [](const key_value& v) {
            const auto& list = std::get<std::vector<std::string>>(v);
            return std::all_of(list.begin(), list.end(), [](const std::string& one) {
              const auto colon = one.find(':');
              const auto name = std::string_view(one).substr(0, colon);
              return colon != std::string::npos && !name.empty() &&
                     std::all_of(name.begin(), name.end(),
                                 [](char c) { return c > 32 && c < 127 && c != '"'; }) &&
                     std::none_of(one.begin(), one.end(), is_control);
            });
          }};
}

rule networks() {
  return {"a list of IP addresses, networks such as \"10.0.0.0/8\", or \"unix\"",
          [](const key_value& v) {
            const auto& list = std::get<std::vector<std::string>>(v);
            return std::all_of(list.begin(), list.end(), [](const std::string& one) {
              return one == "unix" || ip_network::parse(one).has_value();
            });
          }};
}

rule list_of_words() {
  return {"a list of non-empty strings of visible ASCII characters", [](const key_value& v) {
            const auto& list = std::get<std::vector<std::string>>(v);
            return std::all_of(list.begin(), list.end(), [](const std::string& entry) {
              return !entry.empty() && std::all_of(entry.begin(), entry.end(),
                                                   [](char c) { return c > 0x20 && c < 0x7f; });
            });
          }};
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (is_control(c)) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04X", static_cast<unsigned char>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string exact_number(double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  return {text, end};
}

std::string exact_bytes(std::int64_t bytes) {
  constexpr std::pair<std::int64_t, const char*> units[] = {
      {gib * 1024, " TiB"}, {gib, " GiB"}, {mib, " MiB"}, {kib, " KiB"}};
  for (const auto& [factor, name] : units)
    if (bytes != 0 && bytes % factor == 0) return std::to_string(bytes / factor) + name;
  return std::to_string(bytes);
}

std::string exact_time(std::int64_t milliseconds) {
  constexpr std::pair<std::int64_t, const char*> units[] = {
      {3'600'000, "h"}, {60'000, "m"}, {1000, "s"}};
  for (const auto& [factor, name] : units)
    if (milliseconds != 0 && milliseconds % factor == 0)
      return std::to_string(milliseconds / factor) + name;
  return milliseconds == 0 ? "0" : std::to_string(milliseconds) + "ms";
}

} // namespace twill::config::detail
