#include "net/protocol/tgi/tgi_tokenize.hpp"

#include <cstddef>
#include <string_view>

#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

bool continues_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

/// Returns how many bytes of `rest` a token covers. The space that SentencePiece puts before the
/// text is not counted.
std::size_t match_token(std::string_view rest, std::string_view token, bool first) {
  if (rest.starts_with(token)) return token.size();
  if (first && token.starts_with(' ') && rest.starts_with(token.substr(1))) return token.size() - 1;
  return 0;
}

} // namespace

result<std::string> tokenize_inputs(fields& from, const codec_context& context) {
  actors::text_prompt text;
  from.read("inputs", text.text);
  from.read("add_special_tokens", text.add_special);
  if (!from.ok()) return fail(from.error());
  const auto ids = context.engine.tokenize(context.model.id, text, true);
  if (!ids.ok()) return fail(from_engine(ids.code(), ids.detail()));
  const auto pieces = context.engine.pieces(context.model.id, ids.value());
  if (!pieces.ok()) return fail(from_engine(pieces.code(), pieces.detail()));

  const std::string_view whole = text.text;
  std::string out;
  json_writer json(out);
  json.begin_array();
  std::size_t at = 0;
  for (const auto& piece : pieces.value()) {
    const auto length = match_token(whole.substr(at), piece.bytes, at == 0);
    auto start = at;
    at += length;
    auto stop = at;
    while (length > 0 && continues_character(whole, start))
      --start;
    while (length > 0 && continues_character(whole, stop))
      ++stop;
    json.begin_object()
        .field("id", piece.id)
        .field("text", whole.substr(start, stop - start))
        .field("start", start)
        .field("stop", stop)
        .end_object();
  }
  json.end_array();
  return out;
}

} // namespace twill::net
