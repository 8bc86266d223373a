#include "tests/net/support/identities.hpp"

#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "tests/net/support/pem_objects.hpp"

namespace twill::testing {
namespace {

key_ptr key_of(const std::string& pem) {
  return key_ptr(made(PEM_read_bio_PrivateKey(memory(pem).get(), nullptr, nullptr, nullptr)));
}

key_ptr new_key(key_kind kind) {
  switch (kind) {
  case key_kind::p256:
    return key_ptr(made(EVP_EC_gen("P-256")));
  case key_kind::p384:
    return key_ptr(made(EVP_EC_gen("P-384")));
  case key_kind::ed25519:
    return key_ptr(made(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")));
  case key_kind::rsa_2048:
    return key_ptr(made(EVP_RSA_gen(2048)));
  case key_kind::rsa_3072:
    return key_ptr(made(EVP_RSA_gen(3072)));
  case key_kind::rsa_4096:
    return key_ptr(made(EVP_RSA_gen(4096)));
  }
  return nullptr;
}

void add_extension(X509* to, int kind, const char* text) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, to, to, nullptr, nullptr, 0);
  auto* extension = made(X509V3_EXT_conf_nid(nullptr, &context, kind, text));
  X509_add_ext(to, extension, -1);
  X509_EXTENSION_free(extension);
}

void sign(X509* certificate, EVP_PKEY* key) {
  const bool hashes = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519;
  if (X509_sign(certificate, key, hashes ? nullptr : EVP_sha256()) == 0)
    throw std::runtime_error("identities: signing failed");
}

} // namespace

const char* name_of(key_kind kind) {
  switch (kind) {
  case key_kind::p256:
    return "P-256";
  case key_kind::p384:
    return "P-384";
  case key_kind::ed25519:
    return "Ed25519";
  case key_kind::rsa_2048:
    return "RSA 2048";
  case key_kind::rsa_3072:
    return "RSA 3072";
  case key_kind::rsa_4096:
    return "RSA 4096";
  }
  return "";
}

identity make_identity(const std::string& name, const identity* issuer,
                       const identity_options& how) {
  const key_ptr key = new_key(how.key);
  const certificate_ptr own(made(X509_new()));
  X509_set_version(own.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(own.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(own.get()), how.from_s);
  X509_gmtime_adj(X509_getm_notAfter(own.get()), how.until_s);
  auto* subject = X509_get_subject_name(own.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.data()),
                             static_cast<int>(name.size()), -1, 0);
  X509_set_pubkey(own.get(), key.get());
  add_extension(own.get(), NID_basic_constraints, "critical,CA:TRUE"); // it may issue others
  add_extension(own.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  if (issuer == nullptr) {
    X509_set_issuer_name(own.get(), subject);
    sign(own.get(), key.get());
  } else {
    const auto above = certificate_of(issuer->certificate);
    X509_set_issuer_name(own.get(), X509_get_subject_name(above.get()));
    sign(own.get(), key_of(issuer->key).get());
  }
  const auto certificate_text = empty_memory(), key_text = empty_memory();
  PEM_write_bio_X509(certificate_text.get(), own.get());
  PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {text_of(certificate_text), text_of(key_text)};
}

std::string locked_key(const identity& of) {
  const auto text = empty_memory();
  std::string passphrase = "passphrase";
  PEM_write_bio_PrivateKey(text.get(), key_of(of.key).get(), EVP_aes_128_cbc(),
                           reinterpret_cast<unsigned char*>(passphrase.data()),
                           static_cast<int>(passphrase.size()), nullptr, nullptr);
  return text_of(text);
}

std::string traditional_key(const identity& of) {
  const auto text = empty_memory();
  const auto key = key_of(of.key);
  if (EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_ED25519) return of.key;
  if (PEM_write_bio_PrivateKey_traditional(text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                           nullptr) != 1)
    throw std::runtime_error("identities: no traditional form");
  return text_of(text);
}

std::string identity_chain::file() const {
  std::string all = own.certificate;
  for (const identity& one : between)
    all += one.certificate;
  return all;
}

identity_chain make_chain(int n_between, const identity_options& how) {
  identity_chain chain;
  chain.root = make_identity("root");
  const identity* issuer = &chain.root;
  for (int i = 0; i < n_between; ++i) {
    chain.between.insert(chain.between.begin(),
                         make_identity("between " + std::to_string(i), issuer));
    issuer = &chain.between.front();
  }
  chain.own = make_identity("own", issuer, how);
  return chain;
}

} // namespace twill::testing
