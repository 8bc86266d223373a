#include "net/digest.hpp"

#include <string>

#include "tests/catch.hpp"

using namespace twill::net;

namespace {

std::string hash_of(digest_kind kind, const std::string& text, std::size_t piece) {
  digest hashed(kind);
  for (std::size_t at = 0; at < text.size(); at += piece)
    hashed.add(std::string_view(text).substr(at, piece));
  return hashed.hex();
}

} // namespace

// The vectors are those of FIPS 180-4's examples, and what git prints for a file "hello\n".
TEST_CASE("hashes of published texts come out in pieces of any size", "[net]") {
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  for (const std::size_t piece : {1, 7, 64, 1000}) {
    CHECK(hash_of(digest_kind::sha256, "abc", piece) ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(hash_of(digest_kind::sha256, two_blocks, piece) ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(hash_of(digest_kind::sha1, "abc", piece) == "a9993e364706816aba3e25717850c26c9cd0d89d");
    CHECK(hash_of(digest_kind::sha1, std::string("blob 6\0hello\n", 13), piece) ==
          "ce013625030ba8dba906f756967f9e9ca394464a");
  }
  CHECK(hash_of(digest_kind::sha256, "", 1) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
