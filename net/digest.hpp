// digest: SHA-1 or SHA-256 of bytes that come piece by piece.
//
// One thread at a time uses an object. Throws std::runtime_error when OpenSSL has no such hash.
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
  /// The hash of all that was added, in lower-case hexadecimal digits. Call it once, at the end.
  std::string hex();

private:
  struct release {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, release> context_;
};

} // namespace twill::net
