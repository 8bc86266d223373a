#include "net/protocol/tgi/generate_parameters.hpp"

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "net/protocol/output_form.hpp"
#include "net/protocol/sampling_fields.hpp"
#include "net/random_id.hpp"

namespace twill::net {
namespace {

constexpr std::string_view above_zero = R"("type":"number","exclusiveMinimum":0)";
constexpr std::string_view from_one = R"("type":"integer","minimum":1)";
constexpr std::string_view from_zero = R"("type":"integer","minimum":0)";

constexpr field_row typical_p_row{"typical_p", schema::number,
                                  "1 or absent: this server has no typical sampling",
                                  field_use::refused};
constexpr field_row watermark_row{"watermark", schema::boolean,
                                  "false or absent: this server marks no output",
                                  field_use::refused};
constexpr field_row adapter_row{"adapter_id", schema::string,
                                "empty or absent: this server has no adapters", field_use::refused};

constexpr std::array parameter_rows = {
    field_row{"do_sample", schema::boolean, "Tokens are drawn, not the likeliest taken."},
    field_row{"temperature", R"("type":"number","exclusiveMinimum":0,"maximum":100)",
              "A lower one favours the likelier tokens. Other than 1, tokens are drawn."},
    field_row{"top_k", from_one, "Keeps the k likeliest tokens. Given, tokens are drawn."},
    field_row{"top_p", R"("type":"number","exclusiveMinimum":0,"maximum":1)",
              "Keeps the likeliest tokens that together have this share of the probability. Below "
              "1, tokens are drawn."},
    typical_p_row,
    watermark_row,
    adapter_row,
    field_row{"repetition_penalty", above_zero,
              "Divides the logits of tokens of prompt and output; 1 changes none."},
    field_row{"frequency_penalty", R"("type":"number","minimum":-2,"maximum":2)",
              "Taken off a token's logit for each time the output has it."},
    field_row{"max_new_tokens", from_one, "The most tokens of the output."},
    field_row{"stop", schema::strings, "Texts that end the output, and stay in it."},
    field_row{"truncate", from_one, "Only the last so many tokens of the prompt are read."},
    field_row{
        "best_of", from_one,
        "So many outputs are drawn, and the likeliest is the answer; not in a stream, nor with "
        "`seed`."},
    field_row{"seed", from_zero, "The same seed and request give the same output."},
    field_row{"details", schema::boolean, "The answer has its tokens and why it ended."},
    field_row{"decoder_input_details", schema::boolean,
              "The answer has the prompt's tokens as well; not in a stream."},
    field_row{"top_n_tokens", from_zero,
              "How many likeliest tokens are named in each place of the details."},
    field_row{
        "grammar", schema::object,
        "What the output must look like: `type` is json, regex or json_schema, and `value` the "
        "schema or the expression."},
    field_row{"return_full_text", schema::boolean, "The text begins with the prompt."}};

void read_above_zero(fields& from, std::string_view name, float most, std::string_view rule,
                     float& to) {
  from.read(name, to);
  if (from.ok() && from.find(name) != nullptr && !(to > 0 && to <= most))
    from.reject(name, rule, *from.find(name));
}

/// Reads the parameters that change the distribution; returns true if tokens are sampled, false if
/// decoding is greedy.
bool read_distribution(fields& from, bool do_sample, config::sampling_params& to) {
  from.read("do_sample", do_sample);
  read_above_zero(from, "temperature", 100, "above 0 and at most 100", to.temperature);
  if (from.find("top_k") != nullptr) from.read("top_k", to.top_k, 1);
  read_above_zero(from, "top_p", 1, "above 0 and at most 1", to.top_p);
  return do_sample || to.temperature != 1 || to.top_k > 0 || to.top_p < 1;
}

void refuse_what_is_missing(fields& from) {
  float typical_p = 1;
  bool watermark = false;
  std::string adapter;
  from.read(typical_p_row.name, typical_p);
  from.read(watermark_row.name, watermark);
  from.read(adapter_row.name, adapter);
  if (!from.ok()) return;
  for (const auto& [row, wanted] :
       {std::pair(typical_p_row, typical_p != 1), std::pair(watermark_row, watermark),
        std::pair(adapter_row, !adapter.empty())})
    if (wanted) from.reject(row.name, row.note, *from.find(row.name));
}

/// Reads penalties, token limits and stop conditions.
void read_bounds(fields& from, actors::request& to) {
  auto& sampling = to.sampling;
  read_above_zero(from, "repetition_penalty", std::numeric_limits<float>::max(), "above 0",
                  sampling.repetition_penalty);
  from.read("frequency_penalty", sampling.frequency_penalty);
  from.read("max_new_tokens", sampling.max_tokens, 1);
  from.read_strings("stop", sampling.stop);
  sampling.include_stop_str_in_output = true;
  from.read("truncate", to.truncate_prompt_tokens, 1);
}

void read_best_of(fields& from, bool samples, const config::limit_options& limits,
                  generate_options& to) {
  from.read("best_of", to.best_of, 1, limits.max_choices);
  if (to.best_of == 1) return;
  const auto& given = *from.find("best_of");
  if (to.stream) from.reject("best_of", "1 in a stream", given);
  if (!samples) from.reject("best_of", "1 unless tokens are drawn, as with `do_sample`", given);
  if (const auto* seed = from.find("seed"))
    from.reject("seed", "absent where `best_of` is above 1", *seed);
}

void read_seed(fields& from, bool samples, config::sampling_params& to, generate_options& options) {
  from.read("seed", to.seed);
  if (const auto* given = from.find("seed"); given != nullptr && as_integer(*given).value_or(0) < 0)
    from.reject("seed", "a whole number of 0 or more", *given);
  if (!samples) return;
  if (!to.seed.has_value()) to.seed = draw_seed();
  if (options.best_of == 1) options.seed = to.seed;
}

void read_details(fields& from, actors::request& to, generate_options& options) {
  from.read("details", options.details);
  bool prefill = false;
  from.read("decoder_input_details", prefill);
  if (prefill && options.stream)
    from.reject("decoder_input_details", "false in a stream", value(true));
  options.details = options.details || prefill;
  if (prefill) to.prompt_logprobs = 0;
  from.read("top_n_tokens", options.top_tokens, 0);
  if (options.stream || options.details || options.best_of > 1)
    to.sampling.logprobs = options.top_tokens;
}

} // namespace

field_rows generate_parameter_rows() {
  return {parameter_rows.begin(), parameter_rows.end()};
}

void read_generate_parameters(fields& from, const codec_context& context, generate_parameters& to) {
  static const value nothing_given{value_object{}};
  const auto* parameters = from.object("parameters");
  if (!from.ok()) return;
  fields given(parameters == nullptr ? nothing_given : *parameters, "parameters.");
  auto& sampling = to.asked.sampling;
  const bool samples = read_distribution(given, parameters == nullptr, sampling);
  if (!samples) sampling.temperature = 0;
  refuse_what_is_missing(given);
  sampling.max_tokens =
      context.limits.default_max_tokens > 0 ? context.limits.default_max_tokens : -1;
  read_bounds(given, to.asked);
  if (given.ok()) read_best_of(given, samples, context.limits, to.options);
  read_seed(given, samples, sampling, to.options);
  read_details(given, to.asked, to.options);
  if (const auto* grammar = given.find("grammar"))
    read_typed_grammar(given, "grammar", *grammar, to.asked);
  given.read("return_full_text", to.full_text);
  sampling.n = to.options.best_of;
  check_sampling(given, sampling, context);
  if (!given.ok()) from.reject(given.error());
}

} // namespace twill::net
