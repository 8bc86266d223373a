// model_info: a model that is served, its state and its tokenizer, as clients and administrators
// see them. Plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/sampling.hpp"

namespace twill::actors {

/// Whether a model has its weights in memory.
enum class model_state {
  ready,    ///< the model serves requests
  asleep,   ///< the model's memory is released; the next request loads the model
  loading,  ///< the model is being loaded
  draining, ///< the model is put to sleep once the requests under way have ended
  unloaded, ///< asleep, and its files are closed
  failed,   ///< the model could not be opened or loaded; `detail` says why
};

struct model_info {
  std::string id;
  std::vector<std::string> other_names; ///< further names by which requests may name the model
  std::string path;
  std::string family;
  std::string quantization;
  std::int64_t created_unix_s = 0;
  std::int32_t max_model_len = 0;
  std::int32_t vocab_size = 0;
  std::int32_t embedding_size = 0; ///< numbers of event::embedding; 0: unknown
  bool has_chat_template = false;
  config::sampling_params default_sampling;

  model_state state = model_state::ready;
  std::string detail; ///< the reason, if the state is `failed`
  bool pinned = false;
  std::int64_t need_bytes = 0; ///< device memory that the model takes when it is loaded; 0: unknown
  std::int64_t granted_bytes = 0; ///< device memory that the model may take now
  std::int32_t requests_under_way = 0;
  std::int32_t requests_waiting = 0; ///< requests that wait for the model to be loaded

  /// Whether a request that names the model `wanted` means this model.
  bool answers_to(std::string_view wanted) const {
    return wanted == id ||
           std::find(other_names.begin(), other_names.end(), wanted) != other_names.end();
  }
};

/// What an administrator may order a model to do.
enum class model_order {
  load,   ///< load the model, as a request for the model would
  sleep,  ///< release the model's memory once the requests under way have ended
  unload, ///< as `sleep`, and also close the model's files, so that the next load opens them anew
};

struct token_piece {
  std::int32_t id = 0;
  std::string bytes;
};

/// What a client needs to know of a tokenizer to build prompts for the model itself.
struct tokenizer_info {
  std::string kind; ///< "gguf gpt2 / smollm", ...
  bool adds_bos = false;
  std::int32_t bos_id = -1, eos_id = -1; ///< -1: the model has none
  std::vector<token_piece> special;      ///< control tokens, by rising id
  std::string chat_template;             ///< Jinja source; empty: the model has none
};

} // namespace twill::actors
