// The client's address that is derived from forwarding headers equals that of a reference which
// treats addresses and networks as numbers and not as text.
#include "net/http/forwarded_for.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using twill::ip_address;
using namespace twill::net;
using namespace twill::test;

namespace {

using address_bytes = std::array<std::uint8_t, 16>;

/// Addresses close to each other, so that networks divide them.
address_bytes address_of(std::uint32_t n) {
  if (n % 3 == 0) { // 2001:db8::...
    address_bytes v6{0x20, 0x01, 0x0d, 0xb8};
    v6[14] = static_cast<std::uint8_t>(n / 3 % 2);
    v6[15] = static_cast<std::uint8_t>(1 + n / 6 % 4);
    return v6;
  }
  address_bytes v4{};
  v4[10] = v4[11] = 0xff;
  v4[12] = n % 3 == 1 ? 10 : 192;
  v4[14] = static_cast<std::uint8_t>(n / 3 % 2);
  v4[15] = static_cast<std::uint8_t>(1 + n / 6 % 4);
  return v4;
}

bool is_v4(const address_bytes& one) {
  return one[10] == 0xff;
}

std::string text_of(const address_bytes& one) {
  if (!is_v4(one)) {
    constexpr const char* digits = "0123456789abcdef";
    return "2001:db8::" + std::string(one[14] == 1 ? "10" : "") + digits[one[15] % 16];
  }
  std::string text;
  for (std::size_t i = 12; i < 16; ++i)
    text += (i > 12 ? "." : "") + std::to_string(one[i]);
  return text;
}

ip_address parsed(const address_bytes& one) {
  return is_v4(one) ? ip_address::from_v4(one.data() + 12) : ip_address::from_v6(one.data());
}

struct network {
  address_bytes first{};
  int bits = 128;
  bool has(const address_bytes& one) const {
    for (int i = 0; i < bits; ++i) {
      const auto at = static_cast<std::size_t>(i / 8);
      if ((first[at] >> (7 - i % 8) & 1) != (one[at] >> (7 - i % 8) & 1)) return false;
    }
    return true;
  }
};

/// An address as proxies write it, in each notation that is understood.
std::string written(const address_bytes& one, std::uint32_t how) {
  const std::string plain = text_of(one), boxed = "[" + plain + "]";
  const std::string port = ":" + std::to_string(1 + how / 8 % 65535);
  if (is_v4(one)) {
    switch (how % 4) {
    case 0:
      return plain + port;
    case 1:
      return "::ffff:" + plain;
    default:
      return plain;
    }
  }
  switch (how % 4) {
  case 0:
    return boxed + port;
  case 1:
    return boxed;
  default:
    return plain;
  }
}

struct entry {
  std::optional<address_bytes> address; ///< empty if the text is no address, or is blank
  bool blank = false;
};

void play(const operations& sequence) {
  const operation setup = sequence.empty() ? operation{} : sequence.front();
  std::vector<std::string> configured;
  std::vector<network> networks;
  bool unix_sockets = false;
  for (std::uint32_t i = 0; i < setup.kind % 4; ++i) {
    const std::uint32_t n = setup.a / (1 + 16 * i);
    const address_bytes first = address_of(n + i);
    // Networks end at bytes and between them. Addresses are compared in those bits alone.
    const int v4_bits[] = {32, 31, 30, 24, 23, 8, 0}, v6_bits[] = {128, 127, 125, 120, 111, 32, 0};
    const std::size_t width = (setup.b >> (3 * i)) % 7;
    const int bits = is_v4(first) ? v4_bits[width] : v6_bits[width];
    configured.push_back(text_of(first) +
                         (width == 0 && setup.c % 2 == 0 ? "" : "/" + std::to_string(bits)));
    networks.push_back({first, is_v4(first) ? 96 + bits : bits});
  }
  if (setup.c / 2 % 3 == 0) {
    configured.insert(configured.begin() +
                          static_cast<std::ptrdiff_t>(setup.c / 6 % (configured.size() + 1)),
                      "unix");
    unix_sockets = true;
  }
  const trusted_proxies proxies(configured);
  const auto trusts = [&](const address_bytes& one) {
    return std::any_of(networks.begin(), networks.end(),
                       [&](const network& of) { return of.has(one); });
  };

  std::string list;
  std::vector<entry> entries;
  for (std::size_t i = 1; i < sequence.size(); ++i) {
    const operation& op = sequence[i];
    const char* const blanks[] = {"", " ", "\t ", "  "};
    const char* const junk[] = {"unknown", "_hidden",      "1.2.3", "1.2.3.4.5", "256.1.1.1",
                                "::1::2",  "[2001:db8::1", "a b",   "-"};
    entry one;
    std::string text;
    if (op.kind % 8 == 0) {
      one.blank = true;
    } else if (op.kind % 16 == 1) {
      text = junk[op.a % std::size(junk)];
    } else {
      one.address = address_of(op.a);
      text = written(*one.address, op.b);
    }
    entries.push_back(one);
    list += (i > 1 ? "," : "") + std::string(blanks[op.c % 4]) + text + blanks[op.c / 4 % 4];

    std::optional<address_bytes> client;
    bool malformed = false;
    for (std::size_t at = entries.size(); at-- > 0;) {
      if (entries[at].blank) continue;
      malformed = !entries[at].address;
      if (malformed) break;
      client = entries[at].address;
      if (!trusts(*client)) break;
    }
    const auto found = find_forwarded_client(list, proxies);
    demand_equal(found.malformed, malformed, "whether this is malformed: " + list);
    if (malformed) {
      demand(!found.client, "what is malformed names nobody");
      continue;
    }
    demand_equal(found.client.has_value(), client.has_value(), "whether this names one: " + list);
    if (client) demand(*found.client == parsed(*client), "whom this names: " + list);
  }
  for (const entry& one : entries)
    if (one.address)
      demand_equal(proxies.trusts(parsed(*one.address)), trusts(*one.address),
                   "whether " + text_of(*one.address) + " is trusted");
  demand_equal(proxies.trusts(std::nullopt), unix_sockets, "whether Unix sockets are trusted");
  demand(!find_forwarded_client("", proxies).client, "no header names nobody");
}

} // namespace

TEST_CASE("X-Forwarded-For names whom a list of addresses and networks names") {
  CHECK(first_failure({.cases = 10'000, .long_cases = 300'000, .most_operations = 12}, play) == "");
}
