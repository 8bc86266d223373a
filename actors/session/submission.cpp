#include "actors/session/submission.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>

#include "actors/session/request_checks.hpp"

namespace twill::actors {

namespace {

std::uint64_t drawn_seed() {
  std::random_device source;
  return (static_cast<std::uint64_t>(source()) << 32) | source();
}

token_ids stop_ids_of(const models::tokenizer& text, const config::sampling_params& params) {
  std::vector<std::int32_t> ids = params.stop_token_ids;
  if (!params.ignore_eos) ids.insert(ids.end(), text.end_ids().begin(), text.end_ids().end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return std::make_shared<const std::vector<std::int32_t>>(std::move(ids));
}

/// The ids as text, such as "[1, 2]"; a long list is given by its first ids and its length.
std::string listed(const std::vector<std::int32_t>& ids) {
  constexpr std::size_t most = 8;
  std::string out;
  for (std::size_t i = 0; i < std::min(ids.size(), most); ++i)
    out += (i > 0 ? ", " : "[") + std::to_string(ids[i]);
  return ids.size() > most ? out + ", ...] (" + std::to_string(ids.size()) + " ids)" : out + "]";
}

std::optional<request_error> check_made(const std::vector<made_choice>& made,
                                        const config::sampling_params& params,
                                        const served_model& model) {
  const auto n_ids = static_cast<std::int32_t>(model.files->spec.vocab_size);
  const bool fits = made.size() == static_cast<std::size_t>(params.n) && params.max_tokens != 0 &&
                    std::all_of(made.begin(), made.end(), [&](const made_choice& one) {
                      return std::all_of(one.tokens.begin(), one.tokens.end(),
                                         [&](auto id) { return id >= 0 && id < n_ids; });
                    });
  if (fits) return std::nullopt;
  return request_error{errc::executor_failed,
                       "what an earlier run has drawn of this request cannot be its output: it "
                       "needs an entry for each choice, with token ids of this model; send the "
                       "request anew",
                       ""};
}

std::optional<request_error> set_token_rules(const served_model& model, const output_plan& plan,
                                             sequence_spec& spec) {
  const config::sampling_params& params = *spec.sampling;
  if (!params.bad_words.empty()) {
    auto words = tokens_of_words(*model.files->text, params.bad_words);
    if (!words.ok()) return to_request_error(words.code(), words.error().detail);
    spec.bad_words =
        std::make_shared<const std::vector<std::vector<std::int32_t>>>(std::move(words).value());
  }
  if (params.allowed_token_ids.empty()) return std::nullopt;
  if (plan.grammar)
    return request_error::of(
        errc::invalid_argument,
        {"allowed_token_ids",
         "be absent beside `" + plan.grammar_field + "`, which decides which tokens may follow",
         listed(params.allowed_token_ids)});
  spec.allowed = std::make_shared<const std::vector<std::uint32_t>>(mask_of(
      params.allowed_token_ids, std::max(static_cast<std::int32_t>(model.files->spec.vocab_size),
                                         model.files->text->vocab_size())));
  return std::nullopt;
}

std::optional<request_error> set_max_new(const session_args& args, const served_model& model,
                                         sequence_spec& spec) {
  const std::int64_t prompt = static_cast<std::int64_t>(spec.prompt->size());
  const std::int64_t context = model.max_context_tokens;
  // The last drawn token needs no place in the KV cache, because no step reads it.
  const std::int64_t capacity = model.kv_tokens + 1;
  const bool chat = std::holds_alternative<chat_prompt>(args.request.prompt);
  const bool prompt_only = spec.sampling->max_tokens == 0;
  std::int64_t wanted = spec.sampling->max_tokens;
  const bool asked = wanted >= 0 && !args.request.shorten_output;
  if (wanted < 0 && chat && args.limits.default_max_tokens > 0)
    wanted = args.limits.default_max_tokens;
  // A prompt without output may fill the whole context.
  if (prompt >= context + (prompt_only ? 1 : 0))
    return request_error{errc::context_too_long,
                         std::string("`prompt` must be ") + (prompt_only ? "<= " : "< ") +
                             std::to_string(context) + " tokens (the context limit), got " +
                             std::to_string(prompt),
                         chat ? "messages" : "prompt"};
  if (asked && prompt + wanted > context)
    return request_error::of(errc::context_too_long,
                             {"max_tokens",
                              "be <= " + std::to_string(context - prompt) + " with " +
                                  std::to_string(prompt) + " prompt tokens (the context limit is " +
                                  std::to_string(context) + ")",
                              std::to_string(wanted)});
  if (prompt >= capacity || (asked && prompt + wanted > capacity))
    return request_error{errc::too_large,
                         "the prompt and `max_tokens` together must be <= " +
                             std::to_string(capacity) + " tokens (the KV cache), got " +
                             std::to_string(prompt + std::max<std::int64_t>(wanted, 1)),
                         "max_tokens"};
  const std::int64_t most = std::min(context, capacity) - prompt;
  spec.max_new = static_cast<std::int32_t>(wanted < 0 ? most : std::min(wanted, most));
  // A step draws a token after the prompt in any case; the session drops it.
  if (prompt_only) spec.max_new = 1;
  return std::nullopt;
}

} // namespace

token_ids truncate_prompt(const request& asked, std::vector<std::int32_t> ids) {
  const auto most = static_cast<std::size_t>(asked.truncate_prompt_tokens);
  if (most > 0 && ids.size() > most) {
    if (asked.truncate_to_first)
      ids.resize(most);
    else
      ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(most));
  }
  return std::make_shared<const std::vector<std::int32_t>>(std::move(ids));
}

std::optional<request_error> fill_submission(session_args& args, const served_model& model,
                                             const output_plan& plan, token_ids prompt,
                                             submit_prompt& out) {
  request& asked = args.request;
  auto sampling = std::make_shared<config::sampling_params>(std::move(asked.sampling));
  out.request = args.id;
  out.n_choices = sampling->max_tokens == 0 ? 1 : sampling->n;
  out.submitted = args.submitted;
  out.client = asked.client;
  out.tenant = asked.tenant;
  out.client_id = asked.client_id;
  out.priority = asked.priority;
  if (args.tenant != nullptr)
    out.limits = {args.tenant->weight, args.tenant->max_running, args.tenant->max_queued};
  out.spec.cache_scope = args.cache_scope;
  out.spec.pooling = asked.pooling;
  out.spec.prompt = std::move(prompt);
  out.spec.stop_ids = stop_ids_of(*model.files->text, *sampling);
  out.spec.seed = sampling->seed ? *sampling->seed : drawn_seed();
  out.spec.sampling = std::move(sampling);
  if (!asked.made.empty()) {
    if (auto error = check_made(asked.made, *out.spec.sampling, model)) return error;
    out.made = std::make_shared<const std::vector<made_choice>>(std::move(asked.made));
  } else {
    // otherwise the earlier run has reported the scores
    out.spec.prompt_logprobs = asked.prompt_logprobs;
  }
  if (auto error = set_token_rules(model, plan, out.spec)) return error;
  return set_max_new(args, model, out.spec);
}

} // namespace twill::actors
