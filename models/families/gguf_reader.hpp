// gguf_reader: typed access to what a GGUF file says of its model, remembering the first failure.
//
// The counterpart of config_reader. A family reads its keys one after another and asks ok() at the
// end; after a failure, reads yield their fallback. Keys are given without the architecture with
// which they begin in files. One thread.
#pragma once

#include <cstdint>
#include <string>

#include "models/checkpoint/gguf/metadata.hpp"

namespace twill::models::families {

class gguf_reader {
public:
  /// Keys begin with the general.architecture of `meta`, which must be there.
  explicit gguf_reader(const gguf::metadata& meta);

  /// A required integer in 1..2^31-1.
  std::int32_t size(const char* key);
  /// An integer in 0..2^31-1, or `fallback` when the key is absent.
  std::int32_t size_or(const char* key, std::int32_t fallback);
  double number(const char* key);
  double number_or(const char* key, double fallback);
  std::string word_or(const char* key, const std::string& fallback);
  bool has(const char* key) const { return meta_->has(prefix_ + key); }

  /// The key as the file spells it, quoted for messages.
  std::string quoted(const char* key) const { return "`" + prefix_ + key + "`"; }
  void fail(errc code, const std::string& detail);
  const result<nothing>& outcome() const { return outcome_; }
  bool ok() const { return outcome_.ok(); }

private:
  template <class T>
  T keep(result<T> read, T fallback);

  const gguf::metadata* meta_;
  std::string prefix_;
  result<nothing> outcome_ = nothing{};
};

} // namespace twill::models::families
