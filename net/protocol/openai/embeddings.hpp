// The codec of OpenAI's POST /v1/embeddings, with vLLM's additional fields, among them `messages`
// in place of `input`. The functions are pure.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/vectors_in_order.hpp"

namespace twill::net {

result<call> parse_embeddings(const value& body, const codec_context& context);
/// The fields that a body may contain, for "/openapi.json".
field_rows embeddings_rows();

struct embeddings_form {
  std::string model;
  bool base64 = false;
  bool normalize = true; ///< scale vectors to length 1
};

class embeddings_reply final : public reply_encoder {
public:
  explicit embeddings_reply(embeddings_form form) : form_(std::move(form)) {}

  void on_event(std::size_t request, actors::event&& ev, std::string& out) override;
  void on_end(std::string& out) override;
  void on_error(const api_error&, std::string&) override {} // never called: not a stream

private:
  void add(std::size_t index, const std::vector<float>& values, std::string& out) const;

  embeddings_form form_;
  vectors_in_order vectors_;
  std::int64_t prompt_tokens_ = 0;
};

} // namespace twill::net
