// chat_conventions: the chat templates of models whose files have none.
//
// Templates are Jinja sources for chat_template::parse(). A model folder or GGUF file may have its
// own templates (template_sources.hpp). For a model without one, twill may have a template for its
// family. Some families' own code encodes parts of a prompt separately. Their template prints a cut
// mark between these parts, a character at which twill's tokenizer divides the text
// (chat_template.hpp), so that token ids equal those of the family's code. The functions are pure;
// any thread may call them.
#pragma once

#include <string>
#include <string_view>

#include "config/base/value.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::models {

/// What a family's known template may depend on.
struct chat_source {
  const value& config; ///< config.json
  const tokenizer& text;
  const value* generation_config = nullptr; ///< null when the model has none
};

/// The known templates of a model family. Each function returns a Jinja source, or an empty text if
/// the vocabulary lacks the tokens that the template needs.
struct chat_convention {
  /// For folders without a template. Null: ChatML is used if the vocabulary has ChatML's tokens.
  std::string (*of_folder)(const chat_source& model) = nullptr;
  /// For GGUF files without a template. Null: there is no template.
  std::string (*of_gguf)(const tokenizer& text) = nullptr;
};

std::string known_chat_template(const chat_convention& family, const chat_source& model);
std::string known_gguf_chat_template(const chat_convention& family, const tokenizer& text);

// ---- for the families' templates ----------------------------------------------------------------

/// `source` after definitions: CUT prints a cut mark, `more` sets further names.
std::string with_cut_marks(std::string_view source, std::string_view more = {});
/// `text` as a string literal of Jinja.
std::string jinja_string(std::string_view text);
/// The plain ChatML template; empty when its tokens are no control tokens of the vocabulary.
std::string chatml_template(const tokenizer& vocabulary);
/// True when `text` alone is one token, of whatever kind.
bool has_token(const tokenizer& vocabulary, std::string_view text);
/// True when `text` alone is one control token.
bool has_control_token(const tokenizer& vocabulary, std::string_view text);

} // namespace twill::models
