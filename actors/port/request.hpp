// request: what a client asks of the engine. A plain value.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/base/value.hpp"
#include "config/grammar_spec.hpp"
#include "config/sampling.hpp"

namespace twill::actors {

struct chat_prompt {
  value messages; ///< list of {role, content, ...}
  value tools;    ///< list, or null
  bool add_generation_prompt = true;
  /// The last message is the beginning of the answer, and the output continues where the text of
  /// that message ends. The request is refused with errc::template_failed if the template does not
  /// print that text last.
  bool continue_last = false;
  /// If >= 0: at least this many tokens of the context must stay free for the output. Where the
  /// prompt leaves fewer, whole turns are left out of it, the oldest first; system messages and the
  /// last turn always stay. -1: no turn is left out.
  std::int32_t drop_turns_for_output = -1;
  value_object template_arguments; ///< chat_template_kwargs
  /// The current time as the template sees it (Unix time, seconds), so that the same prompt can be
  /// rendered again later. 0: the time when the template is rendered.
  std::int64_t now_unix_s = 0;
  /// The name of one of the model's chat templates. Empty: `tool_use` if the prompt has tools and
  /// the model has a template of that name, else `default`.
  std::string template_name;
  /// Tokens of an earlier exchange. They are placed before the tokens that the template yields.
  std::vector<std::int32_t> before;
};

/// A prompt of raw text. If `add_special` is set, the special tokens that the model wants around a
/// text, such as BOS, are added.
struct text_prompt {
  std::string text;
  bool add_special = true;
  std::vector<std::int32_t> before; ///< tokens placed before those of the text
};

using token_prompt = std::vector<std::int32_t>;

/// Which of its prompt's final hidden states a request asks for in place of output. These are the
/// states after the model's last norm, which are the input of its output projection.
enum class pooling : std::uint8_t {
  none, ///< none: the request generates tokens
  last, ///< the hidden state of the last token
  mean, ///< the mean of the hidden states of all tokens
};

enum class tool_choice_kind {
  automatic, ///< the model decides
  none,      ///< no calls: the answer is text
  required,  ///< at least one call, constrained to the tools' schemas
  named,     ///< a call of `name`, constrained to its schema
};

/// Whether, and which, tools of the chat prompt the answer may or must call.
struct tool_choice {
  tool_choice_kind kind = tool_choice_kind::automatic;
  std::string name;
  bool parallel = true; ///< the answer may hold more than one call
};

/// The output of one choice that an earlier run of the request has drawn.
struct made_choice {
  std::vector<std::int32_t> tokens; ///< all tokens that were drawn, in order
  bool finished = false; ///< the choice is finished, and the event with its `finish` was delivered
};

struct request_summary; // actors/port/request_summary.hpp

struct request {
  std::string model; ///< empty: the only model
  std::variant<text_prompt, token_prompt, chat_prompt> prompt;
  config::sampling_params sampling;
  std::string tenant; ///< the tenant whose limits and caches apply; empty if there are no keys
  /// The client for fair scheduling: requests of one client are served in order of their arrival,
  /// and different clients get fair shares. All requests with an empty name count as one client.
  std::string client;
  std::int32_t priority = 0; ///< among the requests of one client, a lower value is served earlier
  std::string cache_salt;    ///< only prompts with the same salt share cached KV
  std::string client_id;     ///< X-Request-Id or the protocol's id; used in log lines
  std::chrono::milliseconds timeout{0}; ///< 0: the server's own limit
  /// The moment from which the request's times are counted, if it had to wait for its model to be
  /// loaded. Unset: the call of submit().
  std::chrono::steady_clock::time_point arrived{};
  bool echo_prompt_ids = false; ///< report the prompt's ids in the first event

  /// What the output must look like; refused with errc::grammar_refused when it can't be enforced.
  std::optional<config::grammar_spec> grammar;
  /// the name of the client's field that gave `grammar`, for error messages
  std::string grammar_field;
  tool_choice tools; ///< meaningful for a chat_prompt with tools
  /// The output is delivered in `event::parts` (text, reasoning, calls) instead of `event::text`.
  bool parse_output = false;
  /// The number of alternatives that are reported for each prompt token in `event::prompt_scores`.
  /// 0: only the prompt tokens' own scores; -1: no scores.
  std::int32_t prompt_logprobs = -1;
  /// If > 0: only the last this many prompt tokens are kept. 0: all are kept.
  std::int32_t truncate_prompt_tokens = 0;
  bool truncate_to_first = false; ///< truncation keeps the first tokens instead of the last
  /// `sampling.max_tokens` is an upper bound only. If the prompt leaves room for fewer output
  /// tokens, the output is limited to what fits, instead of a refusal with errc::context_too_long.
  bool shorten_output = false;

  /// If not none: nothing is generated, and `sampling`, `grammar` and `tools` have no effect. The
  /// request has a single event, which holds the `embedding`.
  actors::pooling pooling = actors::pooling::none;
  /// With `pooling`: the size of the embedding that the client expects. The request is refused if
  /// the model's embeddings have another size. 0: any size will do.
  std::int32_t dimensions = 0;
  /// the name of the client's prompt field, for error messages; empty: `prompt`
  std::string prompt_field;

  /// If this request continues an earlier run of itself: the tokens which that run has drawn, with
  /// one entry for each choice. Empty: the request is new. The tokens given here count as output
  /// and have no event again. The first event is sent again, without scores of the prompt. The
  /// tokens that follow are those of an undisturbed run if `sampling.seed` is set to the same value
  /// as in the earlier run. The request is refused with errc::executor_failed if nothing is left to
  /// be drawn, or if the tokens given here cannot be output of this request.
  std::vector<made_choice> made;
  /// The `event::continuity` of the earlier run. If the model's value is now another one, the
  /// request is refused with errc::model_changed. Empty: the value is not compared.
  std::string continues;

  /// Called once, on an engine thread, when the request is over for whatever reason. The call must
  /// be as quick as an event's callback. It does not happen if the engine itself ends first. May be
  /// empty.
  std::function<void(const request_summary&)> on_end;
};

} // namespace twill::actors
