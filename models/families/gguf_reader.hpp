// gguf_reader: typed access to the metadata of a GGUF file that remembers the first failure.
//
// This is the counterpart of config_reader for GGUF files. A family reads its keys one after
// another and checks ok() at the end. A read that fails returns its fallback (1 for a required
// integer, 0 for a required number). In the file, keys begin with the architecture's name
// ("llama.block_count"); callers pass them without it ("block_count"). An object is used by one
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "models/checkpoint/gguf/metadata.hpp"

namespace twill::models::families {

class gguf_reader {
public:
  /// `meta` must have general.architecture, because the keys begin with that name.
  explicit gguf_reader(const gguf::metadata& meta);

  /// A required integer in 1..2^31-1.
  std::int32_t size(const char* key);
  /// An integer in 0..2^31-1, or `fallback` when the key is absent.
  std::int32_t size_or(const char* key, std::int32_t fallback);
  double number(const char* key);
  double number_or(const char* key, double fallback);
  std::string word_or(const char* key, const std::string& fallback);
  bool has(const char* key) const { return meta_->has(prefix_ + key); }

  /// Returns the key as the file spells it, in quotes for messages.
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
