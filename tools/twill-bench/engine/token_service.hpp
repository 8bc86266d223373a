// token_service: calls the server's own tokenizer over HTTP, so that prompt lengths are those that
// the server counts.
//
// Its calls block. Only one thread at a time may use an object. A server without these routes gives
// empty results, never an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/twill-bench/engine/control_client.hpp"

namespace twill::bench {

struct model_facts {
  std::string id;
  std::optional<std::int64_t> max_model_len; ///< tokens
  std::optional<std::int64_t> vocab_size;
};

/// Reads a model from a /v1/models reply with vLLM's or llama.cpp's keys: the model named `wanted`,
/// or the first one when `wanted` is empty.
std::optional<model_facts> read_models(const std::string& body, const std::string& wanted);

class token_service {
public:
  virtual ~token_service() = default;
  /// The token ids of a text, without special tokens around them.
  virtual std::optional<std::vector<std::int32_t>> tokenize(const std::string& text) = 0;
  virtual std::optional<std::string> detokenize(const std::vector<std::int32_t>& ids) = 0;
};

/// Calls /tokenize and /detokenize with bodies that both vLLM and llama.cpp understand.
class http_token_service final : public token_service {
public:
  http_token_service(control_client& client, std::string model)
      : client_(client), model_(std::move(model)) {}
  std::optional<std::vector<std::int32_t>> tokenize(const std::string& text) override;
  std::optional<std::string> detokenize(const std::vector<std::int32_t>& ids) override;

private:
  control_client& client_;
  std::string model_;
};

} // namespace twill::bench
