// openssl_objects: OpenSSL's objects, each released by its owner. For .cpp files, so that OpenSSL
// stays out of other headers.
#pragma once

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

namespace twill::net {

/// Deletes for std::unique_ptr by calling `release`.
template <auto release>
struct releaser {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};
using bio_ptr = std::unique_ptr<BIO, releaser<BIO_free>>;
using certificate_ptr = std::unique_ptr<X509, releaser<X509_free>>;
using key_ptr = std::unique_ptr<EVP_PKEY, releaser<EVP_PKEY_free>>;
using digest_ptr = std::unique_ptr<EVP_MD_CTX, releaser<EVP_MD_CTX_free>>;

/// What PEM_read_bio() fills.
struct pem_block {
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long bytes = 0;

  pem_block() = default;
  pem_block(const pem_block&) = delete;
  pem_block& operator=(const pem_block&) = delete;
  ~pem_block() {
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(data);
  }
};

} // namespace twill::net
