// little_endian: writes and reads integers as bytes, lowest byte first, on every machine. Any
// thread may call the functions.
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

/// Overwrites the sizeof(T) bytes at offset `at`, which must exist.
template <class T>
void put_integer_at(std::string& to, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to[at + i] = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
}

/// Returns the integer in the first sizeof(T) bytes of `from`, which must have at least that many.
template <class T>
T get_integer(std::string_view from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(from[i])) << (8 * i));
  return value;
}

} // namespace twill::net
