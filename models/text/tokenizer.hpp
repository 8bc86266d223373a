// tokenizer: converts between text and the token ids of one model, as its reference implementation
// does.
//
// Immutable after loading; any number of threads may call it. Text is UTF-8, and encode() refuses
// anything else. A prefix (BOS) is added only where it is asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/errc.hpp"

namespace twill::models {

using token_id = std::int32_t;

struct encode_options {
  bool add_special = false;   ///< add the model's prefix and suffix ids (BOS ...)
  bool parse_special = false; ///< text of control tokens becomes the control token
};

/// Byte ranges [first, second) of a rendered prompt, ascending and disjoint. An empty range marks a
/// place where the text is cut: what follows is encoded separately, as if it were another text.
using byte_ranges = std::vector<std::pair<std::size_t, std::size_t>>;

class tokenizer {
public:
  virtual ~tokenizer() = default;

  virtual result<std::vector<token_id>> encode(std::string_view text,
                                               const encode_options& options) const = 0;

  /// Encodes a rendered chat prompt: control tokens are recognised except where they touch one of
  /// the `literal` ranges (text that came from a user). Text between control tokens is encoded
  /// whole. The model's prefix ids (BOS ...) come first; a prompt that writes them itself does not
  /// get them twice.
  virtual result<std::vector<token_id>> encode_prompt(std::string_view text,
                                                      const byte_ranges& literal) const = 0;

  /// Bytes of one token as decoding would append them (not always whole characters). Control tokens
  /// yield their text when `special` is set, else nothing. Ids outside the vocabulary yield
  /// nothing.
  virtual std::string token_bytes(token_id id, bool special) const = 0;

  /// True if token_bytes(id) begins with the space that SentencePiece puts in front of a text (its
  /// dummy prefix). This space is dropped if the token is the first one whose text is shown.
  virtual bool drops_leading_space(token_id /*id*/) const { return false; }

  /// Decodes all ids; invalid UTF-8 is replaced as Python's errors="replace" does.
  std::string decode(std::span<const token_id> ids, bool skip_special) const;

  virtual std::int32_t vocab_size() const = 0;
  virtual bool is_special(token_id id) const = 0;
  /// Ids that end a generation (EOS, end of turn), in no order.
  virtual const std::vector<token_id>& end_ids() const = 0;
  virtual token_id bos_id() const = 0;  ///< -1 when there is none
  virtual token_id eos_id() const = 0;  ///< -1 when there is none
  virtual std::string kind() const = 0; ///< "gguf gpt2 / smollm", ... for messages
};

} // namespace twill::models
