// Converts between PEM texts and OpenSSL's objects, for tests. If OpenSSL fails, std::runtime_error
// is thrown with OpenSSL's reason.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdexcept>
#include <string>

#include "net/connection/openssl_objects.hpp"

namespace twill::testing {

using net::bio_ptr, net::certificate_ptr, net::key_ptr;

[[noreturn]] inline void fail_with_reason() {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  throw std::runtime_error(std::string("TLS: ") + (reason == nullptr ? "a fault" : reason));
}

template <class T>
T* made(T* object) {
  if (object == nullptr) fail_with_reason();
  return object;
}

inline std::string text_of(const bio_ptr& memory) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(memory.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

inline bio_ptr empty_memory() {
  return bio_ptr(made(BIO_new(BIO_s_mem())));
}

inline bio_ptr memory(const std::string& text) {
  return bio_ptr(made(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))));
}

inline certificate_ptr certificate_of(const std::string& pem) {
  return certificate_ptr(made(PEM_read_bio_X509(memory(pem).get(), nullptr, nullptr, nullptr)));
}

} // namespace twill::testing
