#include "net/protocol/llamacpp/completion.hpp"

#include <string>
#include <utility>

#include "net/protocol/field_table.hpp"
#include "net/protocol/llamacpp/completion_prompts.hpp"
#include "net/protocol/llamacpp/completion_reply.hpp"
#include "net/protocol/llamacpp/completion_sampling.hpp"
#include "net/protocol/llamacpp/completion_settings.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/output_form.hpp"
#include "net/protocol/sampling_fields.hpp"

namespace twill::net {
namespace {

constexpr std::size_t most_response_fields = 64;
/// Longest grammar to repeat in a reply; the reply repeats the settings for each prompt and choice.
constexpr std::size_t most_grammar_shown = 16 * 1024;

/// Reads the token limit. A limit beyond the context is accepted and has no effect, because
/// llama.cpp ends an output at the end of the context.
void read_completion_limit(fields& from, const codec_context& context,
                           config::sampling_params& to) {
  to.max_tokens = context.limits.default_max_tokens > 0 ? context.limits.default_max_tokens : -1;
  for (const auto* name : {"n_predict", "max_completion_tokens", "max_tokens"}) {
    if (from.find(name) == nullptr) continue;
    from.read(name, to.max_tokens, -2);
    if (to.max_tokens < 0 || to.max_tokens >= context.model.max_model_len) to.max_tokens = -1;
    return;
  }
}

void read_n_probs(fields& from, config::sampling_params& sampling, completion_options& to) {
  from.read(from.find("n_probs") != nullptr ? "n_probs" : "logprobs", to.n_probs, 0);
  if (to.n_probs > 0) sampling.logprobs = to.n_probs;
  bool after_sampling = false;
  from.read("post_sampling_probs", after_sampling);
  if (after_sampling && to.n_probs > 0)
    from.reject("post_sampling_probs", "false: probabilities are the model's, before sampling",
                value(true));
}

void read_reply_fields(fields& from, completion_options& to) {
  from.read("stream", to.stream);
  from.read("return_tokens", to.return_tokens);
  from.read("timings_per_token", to.timings_per_token);
  from.read_strings("response_fields", to.response_fields);
  if (to.response_fields.size() > most_response_fields)
    from.reject("response_fields", "at most " + std::to_string(most_response_fields) + " names",
                *from.find("response_fields"));
  from.read(from.find("n_cmpl") != nullptr ? "n_cmpl" : "n", to.choices_per_prompt, 1);
}

std::string settings_text(const actors::request& asked, const completion_options& options) {
  std::string text;
  json_writer json(text);
  completion_settings shown{.sampling = asked.sampling,
                            .n_probs = options.n_probs,
                            .stream = options.stream,
                            .timings_per_token = options.timings_per_token};
  if (asked.grammar.has_value())
    shown.grammar = asked.grammar->text.size() <= most_grammar_shown
                        ? asked.grammar->text
                        : "(" + std::to_string(asked.grammar->text.size()) + " bytes)";
  add_completion_settings(json, shown);
  return text;
}

} // namespace

field_rows completion_rows() {
  field_rows rows{
      model_row,
      {"prompt", R"("type":["string","array","object"])",
       "A text, token ids, both mixed, or a list of prompts.", field_use::honoured, true},
      {"n_predict", R"("type":"integer","minimum":-2)",
       "The most tokens of the output; below 0 as many as fit."},
      {"max_tokens", R"("type":"integer","minimum":-2)", "As `n_predict`."},
      {"max_completion_tokens", R"("type":"integer","minimum":-2)", "As `n_predict`."},
      {"n_cmpl", R"("type":"integer","minimum":1)", "How many completions of each prompt."},
      {"n", R"("type":"integer","minimum":1)", "As `n_cmpl`."},
      {"stream", schema::boolean, "The output comes as server-sent events."},
      {"n_probs", R"("type":"integer","minimum":0)",
       "The log-probabilities of so many likeliest tokens in each place."},
      {"logprobs", R"("type":"integer","minimum":0)", "As `n_probs`."},
      {"post_sampling_probs", schema::boolean,
       "Must be false with `n_probs`: probabilities are the model's."},
      {"return_tokens", schema::boolean, "The ids of the output come as well."},
      {"timings_per_token", schema::boolean, "Each event of a stream has the times."},
      {"response_fields", R"("type":"array","items":{"type":"string"})",
       "Only these members come."}};
  add_completion_sampling_rows(rows);
  add_form_rows(rows);
  return rows;
}

result<call> parse_completion(const value& body, const codec_context& context) {
  fields from(body);
  completion_options options;
  actors::request asked;
  asked.model = context.model.id;
  asked.shorten_output = true;
  asked.sampling = llamacpp_defaults(context.model.default_sampling);
  read_completion_limit(from, context, asked.sampling);
  read_completion_sampling(from, context, asked);
  read_n_probs(from, asked.sampling, options);
  read_reply_fields(from, options);
  asked.sampling.n = options.choices_per_prompt;
  check_sampling(from, asked.sampling, context);
  auto prompts = read_completion_prompts(from, context);
  const auto n = static_cast<std::size_t>(options.choices_per_prompt);
  if (n > 1 && n * prompts.size() > max_prompts_per_call)
    from.reject("n_cmpl",
                "so few that there are at most " + std::to_string(max_prompts_per_call) +
                    " completions of all prompts together",
                value(std::int64_t{options.choices_per_prompt}));
  if (!from.ok()) return fail(from.error());

  options.model = context.model.id;
  options.settings = settings_text(asked, options);
  call generation;
  generation.stream = options.stream;
  for (auto& one : prompts) {
    generation.requests.push_back(asked);
    generation.requests.back().prompt = std::move(one.prompt);
    options.prompts.push_back(std::move(one.shown));
  }
  generation.encoder = std::make_unique<completion_reply>(std::move(options));
  return generation;
}

} // namespace twill::net
