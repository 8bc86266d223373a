#include "net/protocol/ollama/options.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "net/protocol/foreign_fields.hpp"
#include "net/protocol/sampling_fields.hpp"

namespace twill::net {
namespace {

/// -1 draws a seed, as Ollama does.
void read_ollama_seed(fields& options, config::sampling_params& to) {
  const auto* given = options.find("seed");
  if (given != nullptr && as_integer(*given) == -1)
    to.seed.reset();
  else
    options.read("seed", to.seed);
}

/// 0, -1 and -2 set no limit.
void read_num_predict(fields& options, config::sampling_params& to) {
  std::int32_t most = -1;
  if (options.find("num_predict") == nullptr) return;
  options.read("num_predict", most, -2);
  to.max_tokens = most <= 0 ? -1 : most;
}

/// A sampler that is not there must be off.
void reject_sampler(fields& options, std::string_view name, float off) {
  float given = off;
  options.read(name, given);
  if (options.ok() && given != off)
    options.reject(name, "absent: this server has no such sampler", *options.find(name));
}

void read_penalties(fields& options, config::sampling_params& to) {
  options.read("repeat_penalty", to.repetition_penalty);
  options.read("presence_penalty", to.presence_penalty);
  options.read("frequency_penalty", to.frequency_penalty);
  std::int32_t window = -1;
  options.read("repeat_last_n", window, -1);
  if (window == 0) {
    to.repetition_penalty = 1;
    to.presence_penalty = to.frequency_penalty = 0;
  }
  bool newlines = true;
  options.read("penalize_newline", newlines);
  const bool any =
      to.repetition_penalty != 1 || to.presence_penalty != 0 || to.frequency_penalty != 0;
  if (!newlines && any)
    options.reject("penalize_newline", "true or absent beside penalties", value(false));
}

/// What has no effect must be what it says it is, so that a client's mistake shows.
void check_load_options(fields& options) {
  for (const auto* name :
       {"num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "num_keep"}) {
    std::int32_t ignored = 0;
    options.read(name, ignored);
  }
  for (const auto* name : {"numa", "low_vram", "f16_kv", "logits_all", "vocab_only", "use_mmap",
                           "use_mlock", "embedding_only"}) {
    bool ignored = false;
    options.read(name, ignored);
  }
}

/// The name of a sampling parameter in `options`.
std::string option_name(const std::string& parameter) {
  if (parameter == "repetition_penalty") return "options.repeat_penalty";
  if (parameter == "max_tokens") return "options.num_predict";
  if (parameter == "logprobs") return "top_logprobs";
  return "options." + parameter;
}

/// check_sampling(), whose errors name the fields of this API.
void check_options(fields& from, const config::sampling_params& sampling,
                   const codec_context& context) {
  const value nothing_else(value_object{});
  fields found(nothing_else);
  check_sampling(found, sampling, context);
  if (found.ok()) return;
  auto error = found.error();
  const auto quoted = "`" + error.param + "`";
  const auto name = option_name(error.param);
  if (error.message.starts_with(quoted)) error.message.replace(0, quoted.size(), "`" + name + "`");
  error.param = name;
  from.reject(std::move(error));
}

} // namespace

void read_ollama_options(fields& from, const codec_context& context, config::sampling_params& to) {
  if (const auto* given = from.object("options")) {
    if (given->as_object()->size() > max_ollama_options)
      return from.reject("options",
                         "an object of at most " + std::to_string(max_ollama_options) + " members",
                         *given);
    fields options(*given, "options.");
    options.read("temperature", to.temperature);
    options.read("top_k", to.top_k);
    options.read("top_p", to.top_p);
    options.read("min_p", to.min_p);
    options.read_strings("stop", to.stop);
    read_ollama_seed(options, to);
    read_num_predict(options, to);
    read_penalties(options, to);
    reject_sampler(options, "mirostat", 0);
    reject_sampler(options, "tfs_z", 1);
    reject_sampler(options, "typical_p", 1);
    check_load_options(options);
    if (!options.ok()) return from.reject(options.error());
    note_ignored(options);
  }
  if (from.ok()) check_options(from, to, context);
}

} // namespace twill::net
