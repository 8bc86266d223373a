#include "tools/twill-bench/engine/token_service.hpp"

#include <utility>

#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/protocols/body.hpp"

namespace twill::bench {

namespace js = json_scan;

std::optional<model_facts> read_models(const std::string& body, const std::string& wanted) {
  const std::string_view data = js::member(body, "data");
  const std::size_t n = js::length(data);
  for (std::size_t i = 0; i < n; ++i) {
    const std::string_view model = js::element(data, i);
    model_facts facts;
    facts.id = js::decode(js::member(model, "id"));
    if (!wanted.empty() && facts.id != wanted) continue;
    const std::string_view meta = js::member(model, "meta");
    facts.max_model_len = js::integer(js::member(model, "max_model_len"));
    if (!facts.max_model_len) facts.max_model_len = js::integer(js::member(meta, "n_ctx"));
    facts.vocab_size = js::integer(js::member(model, "vocab_size"));
    if (!facts.vocab_size) facts.vocab_size = js::integer(js::member(meta, "n_vocab"));
    return facts;
  }
  return std::nullopt;
}

std::optional<std::vector<std::int32_t>> http_token_service::tokenize(const std::string& text) {
  body_writer body;
  body.text("model", model_).text("prompt", text).text("content", text);
  body.boolean("add_special_tokens", false).boolean("add_special", false);
  const reply answer = client_.post("/tokenize", body.finish());
  const std::string_view tokens = js::member(answer.body, "tokens");
  if (!answer.ok() || tokens.empty()) return std::nullopt;
  return js::integers(tokens);
}

std::optional<std::string> http_token_service::detokenize(const std::vector<std::int32_t>& ids) {
  body_writer body;
  body.text("model", model_).ids("tokens", ids);
  const reply answer = client_.post("/detokenize", body.finish());
  if (!answer.ok()) return std::nullopt;
  for (const char* key : {"prompt", "content"})
    if (const auto text = js::member(answer.body, key); !text.empty()) return js::decode(text);
  return std::nullopt;
}

} // namespace twill::bench
