#include "models/families/common.hpp"

#include <algorithm>
#include <cmath>

namespace twill::models::families {

gpu::activation read_activation(config_reader& config, const char* key,
                                const std::string& fallback) {
  const std::string word = config.word_or(key, fallback);
  if (word == "silu" || word == "swish") return gpu::activation::silu;
  if (word == "relu") return gpu::activation::relu;
  if (word == "gelu") return gpu::activation::gelu;
  if (word == "gelu_new" || word == "gelu_pytorch_tanh") return gpu::activation::gelu_tanh;
  config.fail(errc::unsupported,
              "`" + std::string(key) +
                  "` must be silu, relu, gelu, gelu_new or gelu_pytorch_tanh, got \"" +
                  word.substr(0, 100) + "\"");
  return gpu::activation::silu;
}

void set_attention_scale(model_spec& spec) {
  spec.attention_scale = 1.0f / std::sqrt(static_cast<float>(std::max(spec.head_dim, 1)));
}

void read_vocabulary(config_reader& config, const checkpoint& weights, model_spec& spec,
                     bool tied_default) {
  const tensor_info* embedding = weights.find(spec.names.embedding);
  if (embedding == nullptr)
    return config.fail(errc::missing_tensor,
                       "the checkpoint must have a tensor `" + spec.names.embedding + "`");
  if (embedding->shape.size() != 2 || embedding->shape[0] < 1 || embedding->shape[0] > 1 << 24)
    return config.fail(errc::bad_tensor, "tensor `" + spec.names.embedding +
                                             "` must have 1 to 2^24 rows of one dimension");
  spec.vocab_size = static_cast<std::int32_t>(embedding->shape[0]);
  const std::int32_t named = config.size_or({"padded_vocab_size", "vocab_size"}, spec.vocab_size);
  if (named > spec.vocab_size)
    return config.fail(errc::bad_metadata, "`vocab_size` must be at most the embedding's rows (" +
                                               std::to_string(spec.vocab_size) + "), got " +
                                               std::to_string(named));
  spec.tied_head =
      config.flag_or("tie_word_embeddings", tied_default) || !weights.lists(spec.names.head);
}

result<model_spec> finished(const config_reader& config, model_spec spec) {
  if (!config.ok()) return config.outcome().error();
  if (auto valid = validate(spec); !valid.ok()) return valid.error();
  return spec;
}

} // namespace twill::models::families
