// unique_keys: removes tokens from masks so that no object of a JSON answer gets one key twice.
//
// The grammar's own rules keep track of declared properties. They cannot do so for keys without
// fixed names, because a context-free grammar cannot remember arbitrary keys. A matcher therefore
// follows the text of its answer and removes two kinds of tokens from its masks: those that would
// complete a key which the object already has, and those after which only such a key could be
// completed. A key can still occur twice in two cases. First, all names that the schema allows may
// be used up while the grammar requires another key. Second, tokens of the second kind are found
// only within the last 32 bytes of a key, and not for keys of more than 256 bytes or with escapes.
// If, for example, a pattern makes all keys end in the same 40 bytes, the answer can come to a
// point where it must repeat a key.
//
// Each matcher has its own unique_keys; one thread at a time. Text outside of objects, such as the
// token <tool_call>, may contain anything except unbalanced quotes and braces.
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

/// The position of a text's end within its JSON objects and their keys.
class json_place {
public:
  enum class event : std::uint8_t { none, opens, closes, key_begins, key_byte, key_ends };
  event push(char c);

  bool in_string() const { return in_string_; }
  bool in_key() const { return in_key_; }
  bool expects_key() const { return expects_key_; }

private:
  std::vector<bool> is_object_; ///< for each open list or object, whether it is an object
  bool in_string_ = false, escaped_ = false, in_key_ = false, expects_key_ = false;
};

/// The tokens of a vocabulary that can end a key. Immutable.
struct key_tokens {
  std::vector<token_id> quoting;  ///< tokens with a quotation mark, sorted by their bytes
  std::vector<token_id> escaping; ///< tokens that may end a key after an escape sequence
  /// Tokens that contain a whole key, listed by the position before them: inside a string value,
  /// inside a key, where a key is expected, or elsewhere.
  std::vector<token_id> in_string, in_key, expecting, elsewhere;
};
key_tokens key_tokens_of(const std::vector<std::string>& bytes);

/// Callbacks that try texts from the answer's current position, to find out what the grammar
/// allows.
struct text_probe {
  std::function<bool(const std::string&)> go; ///< advances by a text; returns false, without
                                              ///< advancing, if the text may not follow
  std::function<void()> back;                 ///< takes back the last successful go()
};

class unique_keys {
public:
  /// Appends `bytes` to the answer. Returns false if they repeat a key.
  bool push(std::string_view bytes);
  /// Removes from a mask the tokens that would repeat a key, unless no other token is left. Returns
  /// true if it removed any.
  bool forbid(std::span<std::int32_t> mask, const std::vector<std::string>& bytes,
              const key_tokens& tokens, const text_probe& probe);

private:
  struct object {
    std::map<std::string, bool> keys; ///< decoded keys; the value is true once dead ends were
                                      ///< searched for the key
    std::set<std::string> dead_ends;  ///< beginnings of keys that can only be continued to keys
                                      ///< which the object already has
  };

  class narrowing;

  bool repeats(std::string_view bytes) const;
  void forbid_ends(narrowing& mask, const std::string& begun, const key_tokens& tokens) const;
  void forbid_dead_ends(narrowing& mask, const std::string& begun) const;
  void find_dead_ends(const std::string& begun, const text_probe& probe);
  bool is_dead_end(const std::string& key, std::size_t n_begun, const text_probe& probe) const;

  json_place place_;
  std::vector<object> open_; ///< one entry per open object or list; those of lists stay empty
  std::string key_;          ///< the current key as it is written, with escapes
};

} // namespace twill::models::grammar
