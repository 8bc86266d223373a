#include "models/text/grammar/unique_keys.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "models/text/grammar/schema/utf8.hpp"

namespace twill::models::grammar {
namespace {

constexpr std::string_view white_space = " \t\r\n";

/// A dead end is the beginning of a key that can only become a key which the object already has.
/// The search for dead ends takes only keys of at most most_key_bytes bytes. It tests a key and
/// then ever shorter beginnings of it, as long as these are dead ends, but at most most_tail_bytes
/// of them. The two bounds keep it short, because a pattern in the schema may force an ending of
/// thousands of bytes on all keys. Even where no dead end is known, a token that completes a
/// repeated key is removed from the mask if another token remains.
constexpr std::size_t most_key_bytes = 256;
constexpr std::size_t most_tail_bytes = 32;

std::int32_t with_bit(std::int32_t word, token_id id, bool on) {
  const auto bit = std::uint32_t{1} << (id % 32);
  const auto bits = static_cast<std::uint32_t>(word);
  return static_cast<std::int32_t>(on ? bits | bit : bits & ~bit);
}

/// True if the string contains nothing that JSON has to escape.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  });
}

std::optional<std::uint32_t> hex_of(std::string_view digits) {
  if (digits.size() < 4) return std::nullopt;
  std::uint32_t out = 0;
  for (const char c : digits.substr(0, 4)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    out = out * 16 + static_cast<std::uint32_t>(digit);
  }
  return out;
}

/// Decodes `raw`, the text between the quotes of a JSON string. Returns none if the text ends
/// within an escape sequence or between the two surrogates of one character.
std::optional<std::string> decoded(std::string_view raw) {
  std::string out;
  while (!raw.empty()) {
    const auto escape = raw.find('\\');
    out += raw.substr(0, escape);
    if (escape == std::string_view::npos) break;
    raw.remove_prefix(escape + 1);
    if (raw.empty()) return std::nullopt;
    const char letter = raw.front();
    raw.remove_prefix(1);
    if (letter != 'u') {
      constexpr std::string_view letters = "bfnrt", stand_for = "\b\f\n\r\t";
      const auto at = letters.find(letter);
      out += at == std::string_view::npos ? letter : stand_for[at];
      continue;
    }
    auto unit = hex_of(raw);
    if (!unit) return std::nullopt;
    raw.remove_prefix(4);
    if (*unit >= 0xd800 && *unit < 0xdc00) {
      if (raw.empty() || (raw.front() == '\\' && raw.size() < 6)) return std::nullopt;
      const auto low = raw.starts_with("\\u") ? hex_of(raw.substr(2)) : std::nullopt;
      if (low && *low >= 0xdc00 && *low < 0xe000) {
        unit = 0x10000 + ((*unit - 0xd800) << 10) + (*low - 0xdc00);
        raw.remove_prefix(6);
      }
    }
    append_utf8(out, *unit);
  }
  return out;
}

/// True if a token contains a whole key when the answer before the token leads to `place`.
bool holds_key(std::string_view token, json_place place) {
  bool began = false;
  for (const char c : token) {
    const auto event = place.push(c);
    began = began || event == json_place::event::key_begins;
    if (began && event == json_place::event::key_ends) return true;
  }
  return false;
}

json_place place_after(std::string_view text) {
  json_place out;
  for (const char c : text)
    out.push(c);
  return out;
}

} // namespace

/// A mask from which tokens are removed.
class unique_keys::narrowing {
public:
  narrowing(std::span<std::int32_t> mask, const std::vector<std::string>& bytes)
      : mask_(mask), bytes_(&bytes) {
    // XGrammar also sets the bits of the last word that belong to no token.
    for (std::size_t id = bytes.size(); id < mask_.size() * 32; ++id)
      set(static_cast<token_id>(id), false);
  }

  const std::string& bytes_of(token_id id) const { return (*bytes_)[static_cast<std::size_t>(id)]; }
  bool has(token_id id) const {
    const auto word = static_cast<std::uint32_t>(mask_[static_cast<std::size_t>(id) / 32]);
    return (word >> (id % 32) & 1) != 0;
  }
  void take(token_id id) {
    if (!has(id)) return;
    set(id, false);
    taken_.push_back(id);
  }
  template <class Test>
  void take_if(const std::vector<token_id>& ids, const Test& test) {
    for (const auto id : ids)
      if (has(id) && test(bytes_of(id))) take(id);
  }
  template <class Test>
  void take_if(const Test& test) {
    for (std::size_t i = 0; i < mask_.size(); ++i)
      for (auto word = static_cast<std::uint32_t>(mask_[i]); word != 0; word &= word - 1) {
        const auto id =
            static_cast<token_id>(i * 32 + static_cast<unsigned>(std::countr_zero(word)));
        if (test(bytes_of(id))) take(id);
      }
  }
  /// Returns false and restores the mask if no token was removed or none would remain.
  bool settle() {
    if (taken_.empty()) return false;
    if (std::any_of(mask_.begin(), mask_.end(), [](auto word) { return word != 0; })) return true;
    for (const auto id : taken_)
      set(id, true);
    return false;
  }

private:
  void set(token_id id, bool on) {
    auto& word = mask_[static_cast<std::size_t>(id) / 32];
    word = with_bit(word, id, on);
  }

  std::span<std::int32_t> mask_;
  const std::vector<std::string>* bytes_;
  std::vector<token_id> taken_;
};

json_place::event json_place::push(char c) {
  if (in_string_) {
    const bool ends = c == '"' && !escaped_;
    escaped_ = c == '\\' && !escaped_;
    if (ends) in_string_ = false;
    if (!in_key_) return event::none;
    in_key_ = !ends;
    return ends ? event::key_ends : event::key_byte;
  }
  switch (c) {
  case '"':
    in_string_ = true;
    in_key_ = std::exchange(expects_key_, false);
    return in_key_ ? event::key_begins : event::none;
  case '{':
  case '[':
    is_object_.push_back(c == '{');
    expects_key_ = c == '{';
    return event::opens;
  case '}':
  case ']':
    expects_key_ = false;
    if (is_object_.empty()) return event::none;
    is_object_.pop_back();
    return event::closes;
  case ',':
    expects_key_ = !is_object_.empty() && is_object_.back();
    return event::none;
  default:
    return event::none;
  }
}

key_tokens key_tokens_of(const std::vector<std::string>& bytes) {
  const auto string = place_after("{\"k\":\""), key = place_after("{\""),
             expecting = place_after("{"), elsewhere = place_after("{\"k\":1");
  key_tokens out;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto& token = bytes[i];
    const auto quote = token.find('"');
    if (quote == std::string::npos) continue;
    const auto id = static_cast<token_id>(i);
    out.quoting.push_back(id);
    if (token.find('\\') != std::string::npos && !place_after("{\"" + token).in_key())
      out.escaping.push_back(id);
    if (token.find('"', quote + 1) == std::string::npos) continue;
    if (holds_key(token, string)) out.in_string.push_back(id);
    if (holds_key(token, key)) out.in_key.push_back(id);
    if (holds_key(token, expecting)) out.expecting.push_back(id);
    if (holds_key(token, elsewhere)) out.elsewhere.push_back(id);
  }
  std::sort(out.quoting.begin(), out.quoting.end(), [&](token_id a, token_id b) {
    return bytes[static_cast<std::size_t>(a)] < bytes[static_cast<std::size_t>(b)];
  });
  return out;
}

bool unique_keys::push(std::string_view bytes) {
  bool unique = true;
  for (const char c : bytes)
    switch (place_.push(c)) {
    case json_place::event::opens:
      open_.emplace_back();
      break;
    case json_place::event::closes:
      open_.pop_back();
      break;
    case json_place::event::key_begins:
      key_.clear();
      break;
    case json_place::event::key_byte:
      key_ += c;
      break;
    case json_place::event::key_ends:
      unique = open_.back().keys.emplace(decoded(key_).value_or(key_), false).second && unique;
      break;
    case json_place::event::none:
      break;
    }
  return unique;
}

/// Returns whether push() would find a repeated key, without copying the keys.
bool unique_keys::repeats(std::string_view bytes) const {
  auto place = place_;
  auto key = key_;
  std::size_t depth = open_.size(), least_depth = depth; ///< least_depth: the lowest depth so far
  std::map<std::size_t, std::set<std::string>> added;    ///< keys in `bytes` so far, by depth
  for (const char c : bytes)
    switch (place.push(c)) {
    case json_place::event::opens:
      added[++depth].clear();
      break;
    case json_place::event::closes:
      added.erase(depth--);
      least_depth = std::min(least_depth, depth);
      break;
    case json_place::event::key_begins:
      key.clear();
      break;
    case json_place::event::key_byte:
      key += c;
      break;
    case json_place::event::key_ends: {
      auto name = decoded(key).value_or(key);
      // If depth > least_depth, the object begins within `bytes`, so no key from before `bytes`
      // belongs to it.
      const bool stands = depth <= least_depth && open_[depth - 1].keys.contains(name);
      if (stands || !added[depth].insert(std::move(name)).second) return true;
      break;
    }
    case json_place::event::none:
      break;
    }
  return false;
}

/// Returns whether `key`, the beginning of a key, can only continue as keys that the object already
/// has. The answer so far contains the first `n_begun` bytes of `key` or, if it has not begun a
/// key, ends before the opening quote. `probe` tries the rest of `key` after the answer.
bool unique_keys::is_dead_end(const std::string& key, std::size_t n_begun,
                              const text_probe& probe) const {
  const auto& object = open_.back();
  if (!probe.go((place_.expects_key() ? "\"" : "") + key.substr(n_begun))) return false;
  bool dead = true;
  // Letters are tried first, because most names continue with a letter.
  for (int i = 0; i < 256 && dead; ++i) {
    const auto next = static_cast<char>(static_cast<unsigned char>('a' + i));
    if (next == '"' ? object.keys.contains(key) : object.dead_ends.contains(key + next)) continue;
    if (!probe.go(std::string(1, next))) continue;
    probe.back();
    dead = false;
  }
  probe.back();
  return dead;
}

/// Examines the keys that were added since the last call and that begin like the key being written.
void unique_keys::find_dead_ends(const std::string& begun, const text_probe& probe) {
  auto& object = open_.back();
  for (auto it = object.keys.lower_bound(begun);
       it != object.keys.end() && it->first.starts_with(begun); ++it) {
    if (it->second || it->first.size() == begun.size() || !is_plain(it->first)) continue;
    it->second = true;
    auto end = it->first;
    if (end.size() > most_key_bytes) continue;
    const auto shortest =
        std::max(begun.size(), end.size() - std::min(end.size(), most_tail_bytes));
    while (end.size() > shortest && is_dead_end(end, begun.size(), probe)) {
      object.dead_ends.insert(end);
      end.pop_back();
    }
  }
}

/// Removes tokens that would complete the key being written to one that the object already has.
/// `begun` is the text of the key so far.
void unique_keys::forbid_ends(narrowing& mask, const std::string& begun,
                              const key_tokens& tokens) const {
  mask.take_if(tokens.escaping, [this](const auto& bytes) { return repeats(bytes); });
  const auto& keys = open_.back().keys;
  for (auto it = keys.lower_bound(begun); it != keys.end() && it->first.starts_with(begun); ++it) {
    const auto end = it->first.substr(begun.size()) + '"';
    if (!is_plain(std::string_view(end).substr(0, end.size() - 1))) continue;
    auto at = std::lower_bound(
        tokens.quoting.begin(), tokens.quoting.end(), end,
        [&mask](token_id id, const std::string& text) { return mask.bytes_of(id) < text; });
    for (; at != tokens.quoting.end() && mask.bytes_of(*at).starts_with(end); ++at)
      mask.take(*at);
  }
}

/// Removes tokens that lead to a dead end.
void unique_keys::forbid_dead_ends(narrowing& mask, const std::string& begun) const {
  const auto& ends = open_.back().dead_ends;
  std::vector<std::string> rests;
  for (auto it = ends.lower_bound(begun); it != ends.end() && it->starts_with(begun); ++it)
    if (it->size() > begun.size()) rests.push_back(it->substr(begun.size()));
  if (rests.empty()) return;
  mask.take_if([&](std::string_view bytes) {
    if (!place_.in_key()) {
      const auto quote = bytes.find_first_not_of(white_space);
      if (quote == std::string_view::npos || bytes[quote] != '"') return false;
      bytes.remove_prefix(quote + 1);
    }
    return std::any_of(rests.begin(), rests.end(),
                       [&](const auto& rest) { return bytes.starts_with(rest); });
  });
}

bool unique_keys::forbid(std::span<std::int32_t> words, const std::vector<std::string>& bytes,
                         const key_tokens& tokens, const text_probe& probe) {
  if (open_.empty()) return false;
  narrowing mask(words, bytes);
  const auto repeating = [this](const auto& text) { return repeats(text); };
  const bool in_key = place_.in_key(), expects_key = place_.expects_key();
  mask.take_if(in_key               ? tokens.in_key
               : place_.in_string() ? tokens.in_string
               : expects_key        ? tokens.expecting
                                    : tokens.elsewhere,
               repeating);
  const auto& keys = open_.back().keys;
  if ((in_key || expects_key) && !keys.empty()) {
    const auto begun = in_key ? decoded(key_) : std::string();
    if (!begun) {
      mask.take_if(tokens.quoting, repeating);
    } else if (const auto first = keys.lower_bound(*begun);
               first != keys.end() && first->first.starts_with(*begun)) {
      if (in_key) forbid_ends(mask, *begun, tokens);
      if (expects_key || is_plain(key_)) {
        find_dead_ends(*begun, probe);
        forbid_dead_ends(mask, *begun);
      }
    }
  }
  return mask.settle();
}

} // namespace twill::models::grammar
