#include "net/digest.hpp"

#include <array>
#include <openssl/evp.h>
#include <stdexcept>

namespace twill::net {
namespace {

void require(int done) {
  if (done != 1) throw std::runtime_error("OpenSSL cannot compute a hash");
}

} // namespace

void digest::release::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

digest::digest(digest_kind kind) : context_(EVP_MD_CTX_new()) {
  require(EVP_DigestInit_ex(context_.get(), kind == digest_kind::sha1 ? EVP_sha1() : EVP_sha256(),
                            nullptr));
}

digest::~digest() = default;

void digest::add(std::string_view bytes) {
  require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string digest::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hashed{};
  unsigned n = 0;
  require(EVP_DigestFinal_ex(context_.get(), hashed.data(), &n));
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < n; ++i) {
    text += digits[hashed[i] >> 4];
    text += digits[hashed[i] & 15];
  }
  return text;
}

} // namespace twill::net
