// openssl_objects: owning pointers for OpenSSL's objects. Include this header only in .cpp files,
// so that no other header includes OpenSSL's.
#pragma once

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

namespace twill::net {

/// A deleter for std::unique_ptr that calls `release`.
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

/// The output of PEM_read_bio(), freed by the destructor.
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
