// token_service: the server's own tokenizer, asked over HTTP, so that lengths are the server's.
//
// Blocking; one thread. A server without these routes gives empty answers, never an error.
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

/// Reads the first entry, or the one named `wanted`, of a /v1/models reply; vLLM's and llama.cpp's
/// keys.
std::optional<model_facts> read_models(const std::string& body, const std::string& wanted);

class token_service {
public:
  virtual ~token_service() = default;
  /// Ids of a text, without special tokens around it.
  virtual std::optional<std::vector<std::int32_t>> tokenize(const std::string& text) = 0;
  virtual std::optional<std::string> detokenize(const std::vector<std::int32_t>& ids) = 0;
};

/// /tokenize and /detokenize in the dialects of vLLM and of llama.cpp at once.
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
