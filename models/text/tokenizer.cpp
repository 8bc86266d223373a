#include "models/text/tokenizer.hpp"

#include "models/text/detokenizer.hpp"

namespace twill::models {

std::string tokenizer::decode(std::span<const token_id> ids, bool skip_special) const {
  detokenizer stream(*this, skip_special);
  std::string text;
  for (const token_id id : ids)
    text += stream.push(id);
  return text += stream.flush();
}

} // namespace twill::models
