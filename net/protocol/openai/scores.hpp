// The codecs of POST /v1/score, as in vLLM, and of POST /v1/rerank, as in Jina, Cohere and vLLM.
// Both measure the similarity of texts by the cosine of their embeddings. The functions are pure,
// except that each reply gets a new id and the current time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

result<call> parse_score(const value& body, const codec_context& context);
result<call> parse_rerank(const value& body, const codec_context& context);
/// The fields that the bodies may contain, for "/openapi.json".
field_rows score_rows();
field_rows rerank_rows();

/// Common part of both replies: keeps the embeddings until all have arrived.
class compared_reply : public reply_encoder {
public:
  compared_reply(reply_identity identity, std::size_t n_requests)
      : identity_(std::move(identity)), vectors_(n_requests) {}

  void on_event(std::size_t request, actors::event&& ev, std::string& out) final;
  void on_error(const api_error&, std::string&) final {} // never called: not a stream

protected:
  const reply_identity& identity() const { return identity_; }
  double cosine_of(std::size_t a, std::size_t b) const;
  std::int64_t prompt_tokens() const { return prompt_tokens_; }

private:
  reply_identity identity_;
  std::vector<std::shared_ptr<const std::vector<float>>> vectors_;
  std::int64_t prompt_tokens_ = 0;
};

/// The reply of /v1/score. It expects one request for each text of `text_1`, then one for each text
/// of `text_2`. If `text_1` is a single text, it is compared with each text of `text_2`; otherwise
/// the n-th text of `text_1` is compared with the n-th text of `text_2`.
class score_reply final : public compared_reply {
public:
  score_reply(reply_identity identity, std::size_t n_first, std::size_t n_second)
      : compared_reply(std::move(identity), n_first + n_second), n_first_(n_first),
        n_second_(n_second) {}
  void on_end(std::string& out) override;

private:
  std::size_t n_first_, n_second_;
};

struct rerank_form {
  std::vector<std::string> documents; ///< texts to repeat in the reply; empty: none
  std::size_t most = 0;               ///< most results; the most similar documents are kept
};

/// The requests are the query, then the documents.
class rerank_reply final : public compared_reply {
public:
  rerank_reply(reply_identity identity, std::size_t n_documents, rerank_form form)
      : compared_reply(std::move(identity), 1 + n_documents), n_documents_(n_documents),
        form_(std::move(form)) {}
  void on_end(std::string& out) override;

private:
  std::size_t n_documents_;
  rerank_form form_;
};

} // namespace twill::net
