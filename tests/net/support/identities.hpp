// Generates certificates and keys of each kind that a server may have.
#pragma once

#include <string>
#include <vector>

namespace twill::testing {

/// A certificate and its key, as PEM.
struct identity {
  std::string certificate;
  std::string key;
};

enum class key_kind { p256, p384, ed25519, rsa_2048, rsa_3072, rsa_4096 };
const char* name_of(key_kind kind);

struct identity_options {
  key_kind key = key_kind::p256;
  long from_s = -24L * 3600, until_s = 24L * 3600; ///< when it is valid, counted from now
};

/// A certificate for `localhost` and 127.0.0.1 with the common name `name`, which may issue other
/// certificates. Without an `issuer` it is self-signed.
identity make_identity(const std::string& name, const identity* issuer = nullptr,
                       const identity_options& how = {});
/// A certificate chain: the root, the certificates in between, ordered from the direct issuer up to
/// the root, and the identity at the end. The options given to make_chain() apply to that identity;
/// the other certificates have P-256 keys.
struct identity_chain {
  identity root;
  std::vector<identity> between;
  identity own;

  /// The contents of a server's certificate file: its own certificate, then the certificates in
  /// between.
  std::string file() const;
};
identity_chain make_chain(int n_between, const identity_options& how = {});

/// The key, locked with a passphrase.
std::string locked_key(const identity& of);
/// The key in the PKCS#1 (RSA) or SEC1 (elliptic curves) encoding; keys of other types are returned
/// unchanged.
std::string traditional_key(const identity& of);

} // namespace twill::testing
