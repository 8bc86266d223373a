// unique_keys: sees to it that no object of an answer in JSON has the same key twice.
//
// A grammar's rules say which declared properties stand already; for keys without fixed names there
// are no such rules, since a language without context does not remember them. So a matcher follows
// the text of its answer and takes tokens out of its masks: those that would end a key which the
// object has, and those after which nothing but such an end may stand. A key stands twice only
// where every name that its schema leaves has been used up and the grammar still asks for one, or
// where the schema forces more than the last 32 bytes of a name.
//
// One per matcher, one thread at a time. Texts outside objects, such as the marks of a tool call,
// may hold anything but unbalanced quotes and braces.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer.hpp"

namespace twill::models::grammar {

/// Where a text stands among objects and their keys.
class json_place {
public:
  enum class event : std::uint8_t { none, opens, closes, key_begins, key_byte, key_ends };
  event push(char c);

  bool in_string() const { return in_string_; }
  bool in_key() const { return in_key_; }
  bool expects_key() const { return expects_key_; }

private:
  std::vector<bool> is_object_; ///< of each list and object that is open
  bool in_string_ = false, escaped_ = false, in_key_ = false, expects_key_ = false;
};

/// The tokens of a vocabulary that can end a key. Immutable.
struct key_tokens {
  std::vector<token_id> quoting;  ///< with a quotation mark, sorted by their bytes
  std::vector<token_id> escaping; ///< that may end a key behind an escape sequence
  /// That hold a whole key if the text before them stands in a value that is a string, in a key,
  /// where a key is expected, or elsewhere.
  std::vector<token_id> in_string, in_key, expecting, elsewhere;
};
key_tokens key_tokens_of(const std::vector<std::string>& bytes);

/// Goes on from where the answer stands, to try what the grammar allows.
struct text_probe {
  std::function<bool(const std::string&)> go; ///< false, and unmoved, where the text may not follow
  std::function<void()> back;                 ///< takes the last successful go() back
};

class unique_keys {
public:
  /// The answer goes on with `bytes`. False when that repeats a key.
  bool push(std::string_view bytes);
  /// Takes out of a mask what would repeat a key, unless nothing else is left. True when it took
  /// something out.
  bool forbid(std::span<std::int32_t> mask, const std::vector<std::string>& bytes,
              const key_tokens& tokens, const text_probe& probe);

private:
  struct object {
    std::map<std::string, bool> keys; ///< decoded; true once it is known whether they are dead ends
    std::set<std::string> dead_ends;  ///< beginnings of keys that only go on to keys that stand
  };

  class narrowing;

  bool repeats(std::string_view bytes) const;
  void forbid_ends(narrowing& mask, const std::string& begun, const key_tokens& tokens) const;
  void forbid_dead_ends(narrowing& mask, const std::string& begun) const;
  void find_dead_ends(const std::string& begun, const text_probe& probe);
  bool is_dead_end(const std::string& key, std::size_t n_begun, const text_probe& probe) const;

  json_place place_;
  std::vector<object> open_; ///< objects, and lists, which stay empty
  std::string key_;          ///< as it is written
};

} // namespace twill::models::grammar
