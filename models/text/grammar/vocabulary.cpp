#include "models/text/grammar/vocabulary.hpp"

#include <xxhash.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/text/grammar/unique_keys.hpp"
#include "models/text/grammar/xgrammar_parts.hpp"

namespace twill::models::grammar {
namespace {

std::uint64_t fingerprint_of(const vocabulary& v) {
  std::string all;
  for (const auto& bytes : v.bytes) {
    all += std::to_string(bytes.size()) + ":";
    all += bytes;
  }
  for (const auto id : v.end_ids)
    all += "," + std::to_string(id);
  return XXH3_64bits(all.data(), all.size());
}

} // namespace

vocabulary_ptr make_vocabulary(std::vector<std::string> bytes, std::vector<token_id> end_ids) {
  auto out = std::make_shared<vocabulary>();
  out->bytes = std::move(bytes);
  std::sort(end_ids.begin(), end_ids.end());
  end_ids.erase(std::unique(end_ids.begin(), end_ids.end()), end_ids.end());
  std::erase_if(end_ids, [&](token_id id) { return id < 0 || id >= out->size(); });
  out->end_ids = std::move(end_ids);
  out->space.resize((out->bytes.size() + 31) / 32);
  for (std::size_t id = 0; id < out->bytes.size(); ++id)
    if (!out->bytes[id].empty() && out->bytes[id].find_first_not_of(" \t\r\n") == std::string::npos)
      out->space[id / 32] |= std::uint32_t{1} << (id % 32);
  out->keys = std::make_shared<const key_tokens>(key_tokens_of(out->bytes));
  out->fingerprint = fingerprint_of(*out);
  const std::vector<std::int32_t> stops(out->end_ids.begin(), out->end_ids.end());
  out->tables = std::make_shared<vocabulary::index>(vocabulary::index{
      xgrammar::TokenizerInfo(out->bytes, xgrammar::VocabType::RAW, out->size(), stops)});
  return out;
}

vocabulary_ptr make_vocabulary(const tokenizer& text, std::int32_t logits_size,
                               std::span<const token_id> shown) {
  const auto n = std::max(text.vocab_size(), logits_size);
  std::vector<std::string> bytes(static_cast<std::size_t>(n));
  for (token_id id = 0; id < text.vocab_size(); ++id)
    if (!text.is_special(id)) bytes[static_cast<std::size_t>(id)] = text.token_bytes(id, false);
  for (const auto id : shown)
    if (id >= 0 && id < text.vocab_size())
      bytes[static_cast<std::size_t>(id)] = text.token_bytes(id, true);
  return make_vocabulary(std::move(bytes), text.end_ids());
}

} // namespace twill::models::grammar
