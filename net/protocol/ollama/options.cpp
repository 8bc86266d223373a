#include "net/protocol/ollama/options.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "net/protocol/foreign_fields.hpp"
#include "net/protocol/sampling_fields.hpp"

namespace twill::net {
namespace {

using params = config::sampling_params;

/// Reads a seed; -1 draws a random seed, as in Ollama.
void read_ollama_seed(fields& options, std::string_view name, params& to) {
  const auto* given = options.find(name);
  if (given != nullptr && as_integer(*given) == -1)
    to.seed.reset();
  else
    options.read(name, to.seed);
}

/// Reads the token limit; 0, -1 and -2 mean no limit.
void read_num_predict(fields& options, std::string_view name, params& to) {
  std::int32_t most = -1;
  if (options.find(name) == nullptr) return;
  options.read(name, most, -2);
  to.max_tokens = most <= 0 ? -1 : most;
}

/// Reads `repeat_last_n`; 0 means that penalties consider no token, so they are turned off.
void read_window(fields& options, std::string_view name, params& to) {
  std::int32_t window = -1;
  options.read(name, window, -1);
  if (window != 0) return;
  to.repetition_penalty = 1;
  to.presence_penalty = to.frequency_penalty = 0;
}

/// Options whose name and meaning are common to all APIs.
constexpr std::array<std::string_view, 7> shared_options = {
    "temperature", "top_k", "top_p", "min_p", "stop", "presence_penalty", "frequency_penalty"};

/// The window must be read after the penalties, because a window of 0 turns them off.
constexpr std::array own_options = {
    bound_field<params>{{"seed", R"("type":"integer","minimum":-1)",
                         "The same seed and request give the same output; -1 draws a seed."},
                        read_ollama_seed},
    bound_field<params>{{"num_predict", R"("type":"integer","minimum":-2)",
                         "The most tokens of the output; 0, -1 and -2 set no limit."},
                        read_num_predict},
    fields_of<params>::member<&params::repetition_penalty>(
        "repeat_penalty", "Divides the logits of tokens of prompt and output; 1 changes none.",
        R"("type":"number","exclusiveMinimum":0)"),
    bound_field<params>{{"repeat_last_n", R"("type":"integer","minimum":-1)",
                         "0 turns the penalties off; any other value changes nothing."},
                        read_window}};

constexpr field_row newline_row{"penalize_newline", schema::boolean,
                                "Ollama; false is refused beside penalties.", field_use::no_effect};

/// A sampler that twill lacks, and the value that turns the sampler off.
struct missing_sampler {
  field_row row;
  float off;
};
constexpr missing_sampler missing(std::string_view name, float off) {
  return {{name, schema::number, "absent: this server has no such sampler", field_use::refused},
          off};
}
constexpr std::array missing_samplers = {missing("mirostat", 0), missing("tfs_z", 1),
                                         missing("typical_p", 1)};

/// Options without effect. Their types are checked, so that mistakes of clients are reported.
constexpr std::array<std::string_view, 6> idle_numbers = {"num_ctx",  "num_batch",  "num_gpu",
                                                          "main_gpu", "num_thread", "num_keep"};
constexpr std::array<std::string_view, 8> idle_flags = {"numa",       "low_vram",      "f16_kv",
                                                        "logits_all", "vocab_only",    "use_mmap",
                                                        "use_mlock",  "embedding_only"};

template <class Names>
void add_idle_rows(field_rows& to, const Names& names, std::string_view type) {
  for (const auto name : names)
    to.push_back({name, type,
                  name == "num_keep"
                      ? "Ollama: an answer ends where the context is full."
                      : "Ollama: the configuration says how models are loaded and computed.",
                  field_use::no_effect});
}

template <class T, class Names>
void check_types(fields& options, const Names& names) {
  T unused{};
  for (const auto name : names)
    options.read(name, unused);
}

void check_newlines(fields& options, const params& sampling) {
  bool newlines = true;
  options.read(newline_row.name, newlines);
  const bool any = sampling.repetition_penalty != 1 || sampling.presence_penalty != 0 ||
                   sampling.frequency_penalty != 0;
  if (!newlines && any)
    options.reject(newline_row.name, "true or absent beside penalties", value(false));
}

void check_samplers(fields& options) {
  for (const auto& [row, off] : missing_samplers) {
    float given = off;
    options.read(row.name, given);
    if (options.ok() && given != off) options.reject(row.name, row.note, *options.find(row.name));
  }
}

/// Returns the name that a sampling parameter has in `options`.
std::string option_name(const std::string& parameter) {
  if (parameter == "repetition_penalty") return "options.repeat_penalty";
  if (parameter == "max_tokens") return "options.num_predict";
  if (parameter == "logprobs") return "top_logprobs";
  return "options." + parameter;
}

} // namespace

field_rows ollama_option_rows() {
  field_rows rows;
  add_sampling_rows(rows, shared_options);
  add_rows(rows, own_options);
  for (const auto& sampler : missing_samplers)
    rows.push_back(sampler.row);
  rows.push_back(newline_row);
  add_idle_rows(rows, idle_numbers, schema::integer);
  add_idle_rows(rows, idle_flags, schema::boolean);
  return rows;
}

void read_ollama_options(fields& from, const codec_context& context, config::sampling_params& to) {
  if (const auto* given = from.object("options")) {
    if (given->as_object()->size() > max_ollama_options)
      return from.reject("options",
                         "an object of at most " + std::to_string(max_ollama_options) + " members",
                         *given);
    fields options(*given, "options.");
    read_sampling(options, shared_options, to);
    read_fields(options, own_options, to);
    check_newlines(options, to);
    check_samplers(options);
    check_types<std::int32_t>(options, idle_numbers);
    check_types<bool>(options, idle_flags);
    if (!options.ok()) return from.reject(options.error());
    static const auto rows = ollama_option_rows();
    note_ignored(options, rows);
  }
  if (auto found = breach_of(to, context)) {
    found->field = option_name(found->field);
    from.reject(*found);
  }
}

} // namespace twill::net
