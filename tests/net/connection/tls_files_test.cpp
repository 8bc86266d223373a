// The certificate and key files of a server. The certificates of each kind of file are all served,
// in the file's order. Damage is either refused or changes nothing beyond the damaged bytes.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "net/connection/tls_credentials.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"
#include "tests/net/support/tls_client.hpp"
#include "tests/net/support/tls_handshake.hpp"
#include "tests/support/damage.hpp"

using namespace twill;
using namespace twill::testing;
using twill::test::damage;
using twill::test::damage_kind;

namespace {

/// The certificates of a PEM text, one by one. They are written as OpenSSL writes them.
std::vector<std::string> blocks_of(const std::string& pem) {
  std::vector<std::string> blocks;
  const std::string first = "-----BEGIN CERTIFICATE-----", last = "-----END CERTIFICATE-----\n";
  for (auto at = pem.find(first); at != pem.npos; at = pem.find(first, at + 1))
    blocks.push_back(pem.substr(at, pem.find(last, at) + last.size() - at));
  return blocks;
}

/// A server's two files in memory.
struct files {
  std::string certificate, key;

  file_reader reader() const {
    return [*this](const std::string& path) -> result<std::string, file_errc> {
      return path == "the.pem" ? certificate : key;
    };
  }
};

/// The result of serving a pair of files.
struct served {
  std::string fault;              ///< why the pair was refused
  std::vector<std::string> shown; ///< the certificates sent to a client, if the handshake succeeded
  std::string handshake;          ///< why the handshake failed
};

served served_by(const files& given, const std::string& root) {
  served out;
  try {
    const net::tls_credentials credentials("the.pem", "the.key", given.reader());
    const auto shaken = shake_hands(credentials.current(), root);
    out.handshake = shaken.fault;
    out.shown = shaken.shown;
  } catch (const std::runtime_error& error) {
    out.fault = error.what();
  }
  return out;
}

bool says(const std::string& fault, const std::string& key, const std::string& file) {
  return fault.find('`' + key + '`') == 0 && fault.find(file) != std::string::npos;
}

std::vector<key_kind> kinds() {
  std::vector<key_kind> all = {key_kind::p256, key_kind::p384, key_kind::ed25519,
                               key_kind::rsa_2048};
  if (std::getenv("TWILL_LONG") != nullptr) // such keys take seconds to make
    all.insert(all.end(), {key_kind::rsa_3072, key_kind::rsa_4096});
  return all;
}

/// The lines of a PEM text as parts: of each block its first line, its body and its last line.
std::vector<test::part> parts_of_pem(const std::string& pem) {
  std::vector<test::sized> sizes;
  std::size_t at = 0;
  const auto take_until = [&](const std::string& name, std::size_t end) {
    sizes.push_back({name, end - at});
    at = end;
  };
  for (int n = 1; at < pem.size(); ++n) {
    const std::string which = " " + std::to_string(n);
    take_until("first line" + which, pem.find('\n', at) + 1);
    take_until("body" + which, pem.find("-----END", at));
    const auto newline = pem.find('\n', at);
    take_until("last line" + which, newline == pem.npos ? pem.size() : newline + 1);
  }
  return test::parts_in_order(sizes);
}

} // namespace

TEST_CASE("a chain of any length and kind of key is sent whole and in order", "[tls]") {
  for (const key_kind kind : kinds()) {
    // Generating an RSA key takes long, so that only one chain length is tested.
    const bool is_slow = std::string(name_of(kind)).starts_with("RSA");
    for (int n = is_slow ? 2 : 0; n <= (is_slow ? 2 : 4); ++n) {
      CAPTURE(name_of(kind), n);
      identity_options how;
      how.key = kind;
      const auto chain = make_chain(n, how);
      for (const auto& key : {chain.own.key, traditional_key(chain.own)}) {
        const auto got = served_by({chain.file(), key}, chain.root.certificate);
        CHECK(got.fault == "");
        CHECK(got.handshake == "");
        CHECK(got.shown == blocks_of(chain.file()));
      }
      // A client that knows only the root needs each intermediate certificate.
      for (int left_out = 0; left_out < n; ++left_out) {
        auto short_chain = chain;
        short_chain.between.erase(short_chain.between.begin() + left_out);
        CHECK(served_by({short_chain.file(), chain.own.key}, chain.root.certificate).handshake ==
              "certificate verify failed");
      }
    }
  }
}

TEST_CASE("a running server sends its chain whole, before and after a reload", "[tls]") {
  auto chain = make_chain(2);
  const auto other = make_chain(3);
  const test::temp_folder folder;
  folder.write("the.pem", chain.file());
  folder.write("the.key", chain.own.key);
  config::options options;
  options.server.tls_certificate = folder.file("the.pem");
  options.server.tls_key = folder.file("the.key");
  running_server server(script{}, options);
  CHECK(tls_client(server.port(), {chain.root.certificate}).shown() == blocks_of(chain.file()));
  const auto as_other = [&](const std::string& path) -> result<std::string, file_errc> {
    return path == options.server.tls_key ? other.own.key : other.file();
  };
  REQUIRE(server.server->reload_certificate(as_other).empty());
  tls_client after(server.port(), {other.root.certificate});
  CHECK(after.shown() == blocks_of(other.file()));
  CHECK(after.get("/health").status == 200);
}

TEST_CASE("connections that begin while a certificate changes see one chain or the other",
          "[tls]") {
  const std::vector<identity_chain> chains = {make_chain(1), make_chain(3)};
  std::vector<files> pairs;
  for (const auto& one : chains)
    pairs.push_back({one.file(), one.own.key});
  net::tls_credentials credentials("the.pem", "the.key", pairs[0].reader());
  std::atomic<bool> over{false};
  std::atomic<int> faults{0};
  std::thread changes([&] {
    for (std::size_t i = 1; !over; ++i)
      faults += !credentials.reload(pairs[i % 2].reader()).empty();
  });
  int seen[2] = {0, 0}, others = 0;
  for (int i = 0; i < 200 && (i < 50 || seen[0] == 0 || seen[1] == 0); ++i) {
    const auto current = credentials.current();
    const auto shown = shake_hands(current, "").shown;
    const auto is = [&](std::size_t i) { return shown == blocks_of(pairs[i].certificate); };
    if (is(0))
      ++seen[0];
    else if (is(1))
      ++seen[1];
    else
      ++others;
    std::this_thread::yield();
  }
  over = true;
  changes.join();
  CHECK(others == 0);
  CHECK(faults == 0);
}

TEST_CASE("what stands around the certificates of a file does not change what is sent", "[tls]") {
  const auto chain = make_chain(2);
  const auto blocks = blocks_of(chain.file());
  const auto sent = [&](const std::string& file) {
    const auto got = served_by({file, chain.own.key}, chain.root.certificate);
    CHECK(got.fault == "");
    return got.shown;
  };
  std::string text, windows, without_end = chain.file();
  for (const auto& block : blocks) {
    text += "subject=CN = somebody\n\n" + block + "\n";
    for (const char c : block)
      windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  }
  without_end.pop_back();
  CHECK(sent(text + "the end\n") == blocks);
  CHECK(sent(windows) == blocks);
  CHECK(sent(without_end) == blocks);
  CHECK(sent(blocks[0] + chain.own.key + blocks[1] + blocks[2]) == blocks);
  CHECK(sent(chain.own.key + chain.file()) == blocks);
  const auto with_root = chain.file() + chain.root.certificate;
  CHECK(sent(with_root) == blocks_of(with_root));
}

TEST_CASE("damage to a file of certificates is refused, or changes the damaged one alone",
          "[tls][damage]") {
  const auto chain = make_chain(2);
  const auto whole = chain.file();
  const auto blocks = blocks_of(whole);
  const auto parts = parts_of_pem(whole);
  int refused = 0, unchanged = 0;
  CHECK(test::faults_after_damage(
            whole, parts, [&](const damage& d, const std::string& damaged) -> std::string {
              const auto got = served_by({damaged, chain.own.key}, "");
              if (!got.fault.empty()) {
                ++refused;
                // If the public key is damaged, either file may be named as the faulty one.
                return says(got.fault, "server.tls_certificate", "the.pem") ||
                               (d.part == "body 1" && says(got.fault, "server.tls_key", "the.key"))
                           ? ""
                           : "refused without the file's name: " + got.fault;
              }
              if (!got.handshake.empty()) return "the handshake failed: " + got.handshake;
              // A file that is cut after a PEM block is a valid shorter file. If the cut leaves
              // only a part of the next block's BEGIN line, nothing shows that there was another
              // block.
              if (d.kind == damage_kind::cut) {
                std::size_t n = 0;
                for (std::size_t end = 0; n < blocks.size() && end + blocks[n].size() - 1 <= d.at;)
                  end += blocks[n++].size();
                const auto end = parts[n * 3 - 1].end;
                if (d.at > end + std::string("-----BEGIN ").size())
                  return "a block that is cut off was left out";
                return got.shown == std::vector(blocks.begin(),
                                                blocks.begin() + static_cast<std::ptrdiff_t>(n))
                           ? ""
                           : "other certificates than those before the cut";
              }
              if (got.shown.size() != blocks.size())
                return "only " + std::to_string(got.shown.size()) + " certificates were sent";
              for (std::size_t i = 0; i < blocks.size(); ++i)
                if (got.shown[i] != blocks[i] && d.part != "body " + std::to_string(i + 1))
                  return "another certificate was sent in place of " + std::to_string(i + 1);
              unchanged += got.shown == blocks;
              return "";
            }) == "");
  CHECK(refused > 100);
  CHECK(unchanged > 0); // damage to the last newline changes no certificate
}

TEST_CASE("damage to a key is refused, or the key still signs for its certificate",
          "[tls][damage]") {
  for (const key_kind kind : {key_kind::p256, key_kind::ed25519, key_kind::rsa_2048})
    for (const bool traditional : {false, true}) {
      if (traditional && kind == key_kind::ed25519) continue;
      CAPTURE(name_of(kind), traditional);
      identity_options how;
      how.key = kind;
      const auto own = make_identity("own", nullptr, how);
      const auto key = traditional ? traditional_key(own) : own.key;
      int refused = 0;
      CHECK(test::faults_after_damage(
                key, parts_of_pem(key),
                [&](const damage&, const std::string& damaged) -> std::string {
                  const auto got = served_by({own.certificate, damaged}, own.certificate);
                  if (got.fault.empty())
                    return got.handshake.empty()
                               ? ""
                               : "accepted, but the handshake failed: " + got.handshake;
                  ++refused;
                  return says(got.fault, "server.tls_key", "the.key")
                             ? ""
                             : "refused without the file's name: " + got.fault;
                }) == "");
      CHECK(refused > 20);
    }
}

TEST_CASE("a key of another certificate is refused, whichever comes first in the file", "[tls]") {
  for (const key_kind kind : kinds()) {
    CAPTURE(name_of(kind));
    identity_options how;
    how.key = kind;
    const auto chain = make_chain(2, how);
    const auto refused = [&](const std::string& certificate, const std::string& key) {
      const auto got = served_by({certificate, key}, "");
      return got.fault.find("`server.tls_key` must be the key of `server.tls_certificate`") == 0 &&
             got.fault.find("the.key") != std::string::npos;
    };
    CHECK(refused(chain.file(), make_identity("other", nullptr, how).key));
    CHECK(refused(chain.file(), chain.between[0].key));
    CHECK(refused(chain.file(), chain.root.key));
    // The server's own certificate must be the first.
    CHECK(refused(chain.between[0].certificate + chain.own.certificate, chain.own.key));
    CHECK(refused(chain.root.certificate + chain.file(), chain.own.key));
    const auto locked = served_by({chain.file(), locked_key(chain.own)}, "");
    CHECK(locked.fault.find("no passphrase") != std::string::npos);
    CHECK(says(locked.fault, "server.tls_key", "the.key"));
  }
}

TEST_CASE("a client refuses a certificate whose time is over or has not come", "[tls]") {
  for (const bool over : {true, false}) {
    identity_options how;
    how.from_s = over ? -7200 : 3600;
    how.until_s = over ? -3600 : 7200;
    const auto own = make_identity("own", nullptr, how);
    CHECK(served_by({own.certificate, own.key}, own.certificate).handshake ==
          "certificate verify failed");
    CHECK(served_by({own.certificate, own.key}, "").handshake == "");
  }
}

TEST_CASE("damage to a client's file of authorities is refused, or costs the damaged one alone",
          "[tls][damage]") {
  std::string whole;
  for (const char* name : {"first", "second", "third"})
    whole += make_identity(name).certificate;
  const auto blocks = blocks_of(whole);
  const test::temp_folder folder;
  const auto path = folder.file("authorities.pem");
  const auto trusted = [&](const std::string& bytes) {
    folder.write("authorities.pem", bytes);
    return authorities_of(net::make_client_context(path));
  };
  CHECK(trusted(whole).size() == 3);
  int refused = 0;
  CHECK(test::faults_after_damage(
            whole, parts_of_pem(whole),
            [&](const damage& d, const std::string& damaged) -> std::string {
              std::vector<std::string> got;
              try {
                got = trusted(damaged);
              } catch (const std::runtime_error& error) {
                ++refused;
                const std::string why = error.what();
                return why.find("`--cacert`") == 0 && why.find(path) != std::string::npos
                           ? ""
                           : "refused without the file's name: " + why;
              }
              std::size_t end = 0;
              for (std::size_t i = 0; i < blocks.size(); ++i) {
                end += blocks[i].size();
                const bool reached = d.kind == damage_kind::cut
                                         ? d.at < end - 1
                                         : d.part == "body " + std::to_string(i + 1);
                if (!reached && std::find(got.begin(), got.end(), blocks[i]) == got.end())
                  return "authority " + std::to_string(i + 1) + " is not trusted";
              }
              return "";
            }) == "");
  CHECK(refused > 100);
}
