// Integers as bytes, lowest first, whatever the machine. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace twill::net {

template <class T>
void put_integer(std::string& to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
}

/// Writes over the bytes at `at`, which must be there.
template <class T>
void put_integer_at(std::string& to, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to[at + i] = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
}

/// The integer at the first bytes of `from`, which must hold as many.
template <class T>
T get_integer(std::string_view from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(from[i])) << (8 * i));
  return value;
}

} // namespace twill::net
