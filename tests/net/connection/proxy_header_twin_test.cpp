// A complete header of the PROXY protocol yields the client that it names, if any, and uses up only
// its own bytes, however reads split it. A damaged header gives the same result as twin(), a simple
// second parser that is given the whole header at once.
#include "net/connection/proxy_header.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <arpa/inet.h>

#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;

namespace {

using state = proxy_header::state;
using address = std::array<std::uint8_t, 16>;

/// What a header says; `bytes` is its length.
struct said {
  bool legal = false;
  std::size_t bytes = 0;
  std::optional<address> client;
  bool operator==(const said&) const = default;
};

address mapped(const std::uint8_t* four) {
  address all{};
  all[10] = all[11] = 0xff;
  std::copy(four, four + 4, all.begin() + 12);
  return all;
}

std::optional<address> address_in(const std::string& text) {
  if (text.find('\0') != std::string::npos) return std::nullopt;
  address raw{};
  if (inet_pton(AF_INET, text.c_str(), raw.data()) == 1) return mapped(raw.data());
  if (inet_pton(AF_INET6, text.c_str(), raw.data()) == 1) return raw;
  return std::nullopt;
}

bool is_port(const std::string& text) {
  if (text.empty() || text.size() > 18) return false;
  if (text.find_first_not_of("0123456789") != std::string::npos) return false;
  return std::stoll(text) <= 65535;
}

said line_says(const std::string& all) {
  const auto end = all.find('\r');
  if (all.compare(0, 6, "PROXY ") != 0 || end == std::string::npos || end + 2 > 107) return {};
  if (all.compare(end, 2, "\r\n") != 0) return {};
  std::vector<std::string> words(1);
  for (std::size_t i = 6; i < end; ++i)
    if (all[i] == ' ')
      words.emplace_back();
    else
      words.back() += all[i];
  if (words[0] == "UNKNOWN") return {true, end + 2, {}};
  if (words.size() != 5 || (words[0] != "TCP4" && words[0] != "TCP6")) return {};
  const auto from = address_in(words[1]), to = address_in(words[2]);
  if (!from || !to || !is_port(words[3]) || !is_port(words[4])) return {};
  const auto is_v4 = [](const address& a) { return mapped(a.data() + 12) == a; };
  if (words[0] == "TCP4" && !(is_v4(*from) && is_v4(*to))) return {};
  return {true, end + 2, from};
}

said block_says(const std::string& all) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(all[i]); };
  if (all.compare(0, 12, std::string("\r\n\r\n\0\r\nQUIT\n", 12)) != 0) return {};
  const std::size_t length = 256u * byte(14) + byte(15);
  if (length > 4096) return {};
  if (byte(12) == 0x20) return {true, 16 + length, {}}; // whatever else it says
  if (byte(12) != 0x21) return {};
  address client{};
  const auto* body = reinterpret_cast<const std::uint8_t*>(all.data()) + 16;
  if (byte(13) == 0x11 && length >= 12) return {true, 16 + length, mapped(body)};
  if (byte(13) == 0x21 && length >= 36) {
    std::copy(body, body + 16, client.begin());
    return {true, 16 + length, client};
  }
  if (byte(13) == 0x00 || byte(13) == 0x31) return {true, 16 + length, {}};
  return {};
}

/// Reads the bytes of a connection, which must be more than a header may have.
said twin(const std::string& all) {
  return all[0] == '\r' ? block_says(all) : line_says(all);
}

class writer {
public:
  explicit writer(const operation& o) : random_(o.a * 31u + o.b), how_(o) {}

  std::uint32_t below(std::uint32_t n) { return random_() % n; }

  std::string bytes(std::size_t n) {
    std::string out(n, 0);
    for (char& c : out)
      c = static_cast<char>(random_());
    return out;
  }

  /// A legal header, and what it says.
  std::string header(said& expected) {
    expected = {true, 0, {}};
    const std::string out = how_.kind % 2 == 0 ? line(expected) : block(expected);
    expected.bytes = out.size();
    return out;
  }

private:
  /// About a third of the bytes are 0 or 255, as is frequent in real addresses.
  std::string raw_address(std::size_t n) {
    std::string out = bytes(n);
    for (char& c : out)
      if (below(3) == 0) c = static_cast<char>(below(2) == 0 ? 0 : 255);
    return out;
  }

  std::string address_text(bool v4, std::optional<address>* to) {
    const auto raw = raw_address(v4 ? 4 : 16);
    const auto* first = reinterpret_cast<const std::uint8_t*>(raw.data());
    char text[64] = "";
    if (!v4 && below(2) == 0) { // the longest notation
      std::string all;
      for (int i = 0; i < 8; ++i) {
        std::snprintf(text, sizeof text, "%04x", first[2 * i] * 256 + first[2 * i + 1]);
        all += (i == 0 ? "" : ":") + std::string(text);
      }
      std::strcpy(text, all.c_str());
    } else {
      inet_ntop(v4 ? AF_INET : AF_INET6, raw.data(), text, sizeof text);
    }
    if (to == nullptr) return text;
    *to = address{};
    if (v4)
      *to = mapped(first);
    else
      std::copy(first, first + 16, (*to)->begin());
    return text;
  }

  std::string port() {
    const std::uint32_t ends[] = {0, 1, 9, 80, 65534, 65535};
    return std::to_string(below(2) == 0 ? ends[below(6)] : below(65536));
  }

  std::string line(said& expected) {
    const auto family = how_.c % 3;
    if (family < 2) {
      const bool v4 = family == 0;
      const std::string from = address_text(v4, &expected.client);
      return std::string("PROXY TCP") + (v4 ? "4 " : "6 ") + from + " " +
             address_text(v4, nullptr) + " " + port() + " " + port() + "\r\n";
    }
    // Everything after UNKNOWN is ignored, up to the length that a line may have.
    std::string out = "PROXY UNKNOWN";
    const std::size_t most = 107 - 2 - out.size();
    const std::size_t n = below(3) == 0 ? most - below(3) : below(static_cast<unsigned>(most));
    if (n > 0 && below(4) != 0) {
      std::string more = bytes(n);
      std::replace(more.begin(), more.end(), '\r', ' ');
      more[0] = ' ';
      out += more;
    }
    return out + "\r\n";
  }

  std::string block(said& expected) {
    const int families[] = {0x11, 0x21, 0x31, 0x00};
    const std::size_t addresses[] = {12, 36, 216, 0};
    const auto which = how_.c % 4;
    const bool local = below(4) == 0;
    std::string body = raw_address(addresses[which]);
    const auto* first = reinterpret_cast<const std::uint8_t*>(body.data());
    if (!local && which == 0) expected.client = mapped(first);
    if (!local && which == 1) {
      expected.client = address{};
      std::copy(first, first + 16, expected.client->begin());
    }
    const std::size_t room = 4096 - body.size();
    switch (below(5)) { // bytes after the addresses
    case 0:
      break;
    case 1:
      body += bytes(room - below(3));
      break;
    case 2:
      body += bytes(256 - body.size() % 256 + below(3) - 1); // in total about a multiple of 256
      break;
    default:
      body += bytes(below(300));
    }
    std::string out("\r\n\r\n\0\r\nQUIT\n", 12);
    out += static_cast<char>(local ? 0x20 : 0x21);
    // With the command LOCAL, the address family is ignored.
    out += static_cast<char>(local && below(2) == 0 ? below(256) : families[which]);
    if (local && below(3) == 0) body = bytes(below(40));
    out += static_cast<char>(body.size() >> 8);
    out += static_cast<char>(body.size() & 255);
    return out + body;
  }

  std::minstd_rand random_;
  operation how_;
};

/// Reads like a socket: never more bytes than were asked for, but perhaps fewer.
said read_pieces(const std::string& all, writer& random, bool whole_pieces) {
  std::size_t n = 0, reads = 0;
  for (;;) {
    const auto parsed = read_proxy_header(std::string_view(all).substr(0, n));
    if (parsed.now == state::malformed) return {};
    if (parsed.now == state::done) {
      said out{true, n, {}};
      if (parsed.client.has_value()) out.client = parsed.client->as_v6();
      demand(!whole_pieces || reads <= 60, "a header is read in few pieces");
      return out;
    }
    demand(parsed.missing > 0, "a header that is not whole misses something");
    demand(n + parsed.missing <= all.size(), "a header that no header can be is refused");
    const auto most = static_cast<std::uint32_t>(parsed.missing);
    n += whole_pieces ? most : random.below(2) == 0 ? 1 : 1 + random.below(most);
    ++reads;
  }
}

/// Replaces a word of the line by another word. Most of them are valid in other places.
void change_word(std::string& all, std::size_t header, writer& random) {
  const std::string words[] = {"TCP4", "TCP6",      "UNKNOWN", "1.2.3.4", "::1", "::ffff:1.2.3.4",
                               "0",    "65536",     "",        "-1",      "0x1", "256.1.1.1",
                               "tcp4", "1.2.3.4.5", "+1",      "1.2.3",   ":::", "UNKNOWN1"};
  std::vector<std::size_t> blanks;
  for (std::size_t i = 0; i < header; ++i)
    if (all[i] == ' ') blanks.push_back(i);
  if (blanks.empty()) return;
  const auto at = blanks[random.below(static_cast<std::uint32_t>(blanks.size()))] + 1;
  all.replace(at, all.find_first_of(" \r", at) - at, words[random.below(std::size(words))]);
}

void change(std::string& all, std::size_t header, writer& random) {
  if (all[0] == 'P' && random.below(3) == 0) return change_word(all, header, random);
  const std::string frequent(" \r\n:.0129TCPUNKOW\0!\x20\x21\x11", 23);
  // Most bytes of a long header are ignored, so most changes are made in its first 60 bytes.
  const auto end = static_cast<std::uint32_t>(header);
  const auto at = random.below(random.below(4) == 0 ? end : std::min(end, 60u));
  const char to = random.below(2) == 0
                      ? frequent[random.below(static_cast<std::uint32_t>(frequent.size()))]
                      : static_cast<char>(random.below(256));
  switch (random.below(4)) {
  case 0:
    all.erase(at, 1 + random.below(2));
    break;
  case 1:
    all.insert(at, 1, to);
    break;
  case 2: // repeats up to 20 bytes, such as a word or a field
    all.insert(at, all.substr(at, 1 + random.below(20)));
    break;
  default:
    all[at] = to;
  }
}

} // namespace

TEST_CASE("PROXY headers say what was written, and what follows them stays") {
  CHECK(first_failure({.cases = 6000, .long_cases = 100'000, .most_operations = 12},
                      [](const operations& sequence) {
                        for (const operation& o : sequence) {
                          writer random(o);
                          said expected;
                          auto all = random.header(expected);
                          const auto n = all.size();
                          all += random.bytes(4400);
                          demand(twin(all) == expected, "the test reads what it wrote");
                          demand(read_pieces(all, random, true) == expected, "in whole pieces");
                          demand(read_pieces(all, random, false) == expected, "in small pieces");
                          for (std::uint32_t i = 0; i <= o.c % 4; ++i) {
                            auto changed = all;
                            change(changed, n, random);
                            const said about = twin(changed);
                            demand(read_pieces(changed, random, true) == about,
                                   "in whole pieces: " + changed.substr(0, n + 2));
                            demand(read_pieces(changed, random, false) == about,
                                   "in small pieces: " + changed.substr(0, n + 2));
                          }
                        }
                      }) == "");
}

TEST_CASE("A PROXY header's lengths are bounded where they should be") {
  operation seed;
  writer random(seed);
  const auto reads = [&](std::string header) {
    const std::string all = header + std::string(8000, 'x');
    const auto whole = read_pieces(all, random, true);
    CHECK(whole == read_pieces(all, random, false));
    CHECK(whole == twin(all));
    CHECK((!whole.legal || whole.bytes == header.size()));
    return whole.legal;
  };
  for (std::size_t n = 0; n <= 120; ++n)
    CHECK(reads("PROXY UNKNOWN" + std::string(n == 0 ? 0 : 1, ' ') +
                std::string(n == 0 ? 0 : n - 1, 'y') + "\r\n") == (13 + n + 2 <= 107));
  for (const int command : {0x20, 0x21})
    for (const int family : {0x00, 0x11, 0x12, 0x21, 0x22, 0x31, 0x41, 0xff})
      for (const std::size_t n : {0, 1, 11, 12, 13, 35, 36, 37, 255, 256, 257, 4095, 4096, 4097}) {
        std::string header("\r\n\r\n\0\r\nQUIT\n", 12);
        header += static_cast<char>(command);
        header += static_cast<char>(family);
        header += static_cast<char>(n >> 8);
        header += static_cast<char>(n & 255);
        const std::size_t least = command == 0x20  ? 0
                                  : family == 0x11 ? 12
                                  : family == 0x21 ? 36
                                                   : 0;
        const bool known =
            command == 0x20 || family == 0x00 || family == 0x11 || family == 0x21 || family == 0x31;
        CHECK(reads(header + std::string(n, 'b')) == (known && n >= least && n <= 4096));
      }
}
