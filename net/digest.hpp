// digest: computes the SHA-1 or SHA-256 hash of bytes that arrive in pieces.
//
// Only one thread at a time may use an object. The constructor throws std::runtime_error when
// OpenSSL does not offer the hash.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace twill::net {

enum class digest_kind { sha1, sha256 };

class digest {
public:
  explicit digest(digest_kind kind);
  ~digest();
  digest(const digest&) = delete;
  digest& operator=(const digest&) = delete;

  void add(std::string_view bytes);
  /// Returns the hash of all added bytes as lower-case hexadecimal digits. Call hex() once, at the
  /// end.
  std::string hex();

private:
  struct release {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, release> context_;
};

} // namespace twill::net
