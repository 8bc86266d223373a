// The codecs of Ollama's POST /api/embed and its older POST /api/embeddings. The functions are
// pure, except that a reply measures its time with the clock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/vectors_in_order.hpp"

namespace twill::net::ollama {

/// Codec of /api/embed: `input` is a text or a list of texts; the vectors are scaled to length 1.
result<call> parse_embed(const value& body, const codec_context& context);
/// Codec of /api/embeddings: `prompt` is a text; the vector is the model's output, not scaled.
result<call> parse_embeddings(const value& body, const codec_context& context);
/// The fields that the bodies may contain, for "/openapi.json".
field_rows embed_rows();
field_rows embeddings_rows();

class embed_reply final : public reply_encoder {
public:
  explicit embed_reply(std::string model) : model_(std::move(model)) {}

  void on_event(std::size_t request, actors::event&& ev, std::string& out) override;
  void on_end(std::string& out) override;
  void on_error(const api_error&, std::string&) override {} // never called: not a stream

private:
  std::string model_; ///< the model's name as the client wrote it
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  vectors_in_order vectors_;
  std::int64_t prompt_tokens_ = 0;
};

class embedding_reply final : public reply_encoder {
public:
  void on_event(std::size_t request, actors::event&& ev, std::string& out) override;
  void on_end(std::string&) override {}
  void on_error(const api_error&, std::string&) override {} // never called: not a stream
};

} // namespace twill::net::ollama
