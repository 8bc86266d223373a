#include "net/protocol/ollama/request.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "net/protocol/generation_fields.hpp"
#include "net/protocol/json/members.hpp"
#include "net/protocol/ollama/options.hpp"
#include "net/protocol/ollama/settled_source.hpp"
#include "net/protocol/ollama/times.hpp"
#include "net/protocol/output_form.hpp"
#include "net/protocol/sampling_fields.hpp"

namespace twill::net {
namespace {

/// True if `keep_alive` (seconds, or a duration as text) is 0. How long models stay loaded is
/// configured, so other values have no effect, and 0 matters only in requests without a prompt.
bool is_zero_keep_alive(fields& from) {
  const auto* given = from.find("keep_alive");
  if (given == nullptr) return false;
  auto seconds = given->as_number();
  if (const auto* text = given->as_string()) seconds = go_seconds(*text);
  if (!seconds.has_value())
    from.reject("keep_alive", "a number of seconds or a duration such as \"5m\"", *given);
  return seconds == 0.0;
}

/// Reads `think`: true, false, or an effort. Templates that know no degrees of effort treat an
/// effort as true.
void read_think(fields& from, value_object& to) {
  const auto* given = from.find("think");
  if (given == nullptr || *given == value("")) return;
  if (const auto* flag = given->as_bool()) {
    to.emplace_back("enable_thinking", *flag);
    return;
  }
  if (*given != value("low") && *given != value("medium") && *given != value("high"))
    return from.reject("think", R"(true, false, "low", "medium" or "high")", *given);
  to.emplace_back("enable_thinking", true);
  to.emplace_back("reasoning_effort", *given);
}

} // namespace

void add_ollama_rows(field_rows& to) {
  constexpr std::array rows = {
      model_row,
      field_row{"stream", schema::boolean, "Lines of JSON as they come (the default), or one."},
      field_row{"format", R"("type":["string","object"])",
                "\"json\", or a JSON Schema that the answer follows."},
      field_row{"options", schema::object, "How tokens are chosen, and how a model is loaded.",
                field_use::honoured, false, ollama_option_rows},
      field_row{"think", R"("type":["boolean","string"])",
                "Whether the template asks for thinking, or how much of it."},
      field_row{"truncate", schema::boolean,
                "The oldest of a prompt that is too long is left out (the default)."},
      field_row{"logprobs", schema::boolean, "The log-probability of each token."},
      field_row{"top_logprobs", R"("type":"integer","minimum":0)",
                "With `logprobs`: how many likeliest tokens are named in each place."},
      field_row{"keep_alive", R"("type":["number","string"])",
                "Ollama: models stay loaded as the configuration says. To 0 without a prompt or "
                "messages the answer has \"unload\" as its `done_reason`.",
                field_use::no_effect},
      field_row{"shift", schema::boolean, "Ollama", field_use::no_effect}};
  add_rows(to, rows);
}

ollama_call read_ollama_call(fields& from, const codec_context& context) {
  ollama_call read;
  auto& request = read.request;
  auto& sampling = request.sampling;
  set_defaults(context, request);
  read_chat_logprobs(from, context, sampling);
  read_ollama_options(from, context, sampling);
  read_ollama_format(from, request);
  read_think(from, read.template_arguments);
  read.unloads = is_zero_keep_alive(from);
  bool truncate = true, shift = true;
  from.read("truncate", truncate);
  // `shift` has no effect: an answer ends when the context is full, because no model here drops the
  // beginning of its context to continue.
  from.read("shift", shift);
  request.shorten_output = true;
  if (truncate) {
    const auto most = std::max(context.model.max_model_len / 8, 1);
    read.room = sampling.max_tokens > 0 ? std::min(sampling.max_tokens, most) : most;
  }

  auto& reply = read.reply;
  from.read("stream", reply.stream);
  const auto identity = make_identity("", context);
  reply.id = identity.id;
  from.read("model", reply.model);
  if (reply.model.empty()) reply.model = identity.model;
  reply.logprobs = sampling.logprobs >= 0;
  return read;
}

call load_or_unload(ollama_call asked) {
  call made;
  asked.reply.stream = false;
  asked.reply.settled_as = asked.unloads ? "unload" : "load";
  made.encoder = std::make_unique<ollama_reply>(std::move(asked.reply));
  if (asked.unloads) {
    made.source = std::make_shared<settled_source>();
    return made;
  }
  // A request that asks for no token ends once its model is loaded, and needs no forward pass.
  actors::request loads;
  loads.model = std::move(asked.request.model);
  loads.prompt = actors::token_prompt{0};
  loads.sampling.max_tokens = 0;
  made.requests.push_back(std::move(loads));
  return made;
}

} // namespace twill::net
