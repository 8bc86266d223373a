#include "net/protocol/tgi/generate.hpp"

#include <limits>
#include <string>
#include <utility>

#include "net/protocol/json/fields.hpp"
#include "net/protocol/output_form.hpp"
#include "net/protocol/sampling_fields.hpp"
#include "net/protocol/tgi/generate_reply.hpp"
#include "net/random_id.hpp"

namespace twill::net {
namespace {

void read_above_zero(fields& from, std::string_view name, float most, std::string_view rule,
                     float& to) {
  from.read(name, to);
  if (from.ok() && from.find(name) != nullptr && !(to > 0 && to <= most))
    from.reject(name, rule, *from.find(name));
}

/// Reads what changes the distribution; returns whether a token is drawn at all.
bool read_distribution(fields& from, bool do_sample, config::sampling_params& to) {
  from.read("do_sample", do_sample);
  read_above_zero(from, "temperature", 100, "above 0 and at most 100", to.temperature);
  if (from.find("top_k") != nullptr) from.read("top_k", to.top_k, 1);
  read_above_zero(from, "top_p", 1, "above 0 and at most 1", to.top_p);
  float typical_p = 1;
  from.read("typical_p", typical_p);
  if (typical_p != 1)
    from.reject("typical_p", "1 or absent: this server has no typical sampling",
                *from.find("typical_p"));
  return do_sample || to.temperature != 1 || to.top_k > 0 || to.top_p < 1;
}

void refuse_what_is_missing(fields& from) {
  bool watermark = false;
  from.read("watermark", watermark);
  if (watermark)
    from.reject("watermark", "false: this server marks no output", *from.find("watermark"));
  std::string adapter;
  from.read("adapter_id", adapter);
  if (!adapter.empty())
    from.reject("adapter_id", "absent: this server has no adapters", *from.find("adapter_id"));
}

void read_best_of(fields& from, bool samples, const config::limit_options& limits,
                  generate_options& to) {
  from.read("best_of", to.best_of, 1, limits.max_choices);
  if (to.best_of == 1) return;
  const auto& given = *from.find("best_of");
  if (to.stream) from.reject("best_of", "1 in a stream", given);
  if (!samples) from.reject("best_of", "1 unless `do_sample` is true", given);
  if (const auto* seed = from.find("seed"))
    from.reject("seed", "absent where `best_of` is above 1", *seed);
}

/// Penalties, limits and what ends an output.
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

result<call> make_generation(const value& body, const codec_context& context, bool in_list,
                             bool stream) {
  fields from(body);
  generate_options options;
  options.stream = stream;
  options.in_list = in_list;
  if (in_list) from.read("stream", options.stream);
  std::string inputs;
  from.require("inputs");
  from.read("inputs", inputs);
  if (from.ok() && inputs.empty())
    from.reject("inputs", "a text that is not empty", *from.find("inputs"));
  static const value nothing_given{value_object{}};
  const auto* parameters = from.object("parameters");
  if (!from.ok()) return fail(from.error());

  actors::request asked;
  asked.model = context.model.id;
  fields given(parameters == nullptr ? nothing_given : *parameters, "parameters.");
  const bool samples = read_distribution(given, parameters == nullptr, asked.sampling);
  if (!samples) asked.sampling.temperature = 0;
  refuse_what_is_missing(given);
  asked.sampling.max_tokens =
      context.limits.default_max_tokens > 0 ? context.limits.default_max_tokens : -1;
  read_bounds(given, asked);
  if (given.ok()) read_best_of(given, samples, context.limits, options);
  read_seed(given, samples, asked.sampling, options);
  read_details(given, asked, options);
  if (const auto* grammar = given.find("grammar"))
    read_typed_grammar(given, "grammar", *grammar, asked);
  bool full_text = false;
  given.read("return_full_text", full_text);
  asked.sampling.n = options.best_of;
  check_sampling(given, asked.sampling, context);
  if (!given.ok()) return fail(given.error());

  if (full_text) options.prefix = inputs;
  asked.prompt = actors::text_prompt{std::move(inputs)};
  call generation;
  generation.stream = options.stream;
  generation.requests.push_back(std::move(asked));
  generation.encoder = std::make_unique<generate_reply>(std::move(options));
  return generation;
}

} // namespace

field_rows generate_rows() {
  return {
      model_row,
      {"inputs", schema::string, "The prompt.", field_use::honoured, true},
      {"parameters", schema::object,
       "Honoured: `best_of`, `temperature`, `repetition_penalty`, `frequency_penalty`, `top_k`, "
       "`top_p`, `do_sample`, `max_new_tokens`, `return_full_text`, `stop`, `truncate`, "
       "`details`, `decoder_input_details`, `seed`, `top_n_tokens`, `grammar`. Refused unless "
       "off: `typical_p`, `watermark`, `adapter_id`."}};
}

field_rows compat_generate_rows() {
  auto rows = generate_rows();
  rows.push_back({"stream", schema::boolean, "The output comes as server-sent events."});
  return rows;
}

result<call> parse_generate(const value& body, const codec_context& context) {
  return make_generation(body, context, false, false);
}

result<call> parse_generate_stream(const value& body, const codec_context& context) {
  return make_generation(body, context, false, true);
}

result<call> parse_compat_generate(const value& body, const codec_context& context) {
  return make_generation(body, context, true, false);
}

} // namespace twill::net
