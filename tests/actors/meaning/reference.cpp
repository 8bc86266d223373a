#include "tests/actors/meaning/reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "models/checkpoint/json.hpp"
#include "models/compute.hpp"
#include "models/text/detokenizer.hpp"
#include "tests/actors/meaning/chats.hpp"
#include "tests/actors/meaning/plain_draw.hpp"
#include "tests/actors/meaning/plain_form.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/text/tool_calls/parser_runner.hpp"
#include "tests/support/operations.hpp"

namespace twill::test {
namespace {

using ids = id_list;
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr std::int32_t block_tokens = 16, pass_tokens = 256;

/// A request as the decoder and the sampler see it.
struct plain_request {
  ids prompt;
  std::set<std::int32_t> ends; ///< ids that end the output
  std::vector<ids> bad_words;
  std::int32_t max_new = 0;
  plain_form form;
  bool is_chat = false; ///< the output is a text of its own, and does not continue the prompt's
};

/// One choice of an answer, from its events.
struct plain_output {
  std::vector<actors::token_output> tokens;
  std::string text;
  std::vector<models::tool_calls::call_event> parts;
  std::optional<actors::finish_reason> finish;
  std::string stop_string;
  std::int32_t stop_token = -1;

  ids first(std::size_t n) const {
    ids list;
    for (std::size_t i = 0; i < n; ++i)
      list.push_back(tokens[i].chosen.id);
    return list;
  }
};

/// Converts the parts of an output to the events of a parser.
std::vector<models::tool_calls::call_event>
events_of(const std::vector<actors::output_part>& parts) {
  using kind = models::tool_calls::call_event_kind;
  constexpr std::array kinds = {
      std::pair(actors::output_part_kind::text, kind::text),
      std::pair(actors::output_part_kind::reasoning, kind::reasoning),
      std::pair(actors::output_part_kind::call_begin, kind::call_begin),
      std::pair(actors::output_part_kind::call_arguments, kind::call_arguments),
      std::pair(actors::output_part_kind::call_end, kind::call_end)};
  std::vector<models::tool_calls::call_event> events;
  for (const auto& part : parts)
    for (const auto& [outside, inside] : kinds)
      if (part.kind == outside)
        events.push_back({inside, part.text, part.call, part.complete, part.call_id});
  return events;
}

} // namespace

struct reference::impl {
  const small_model& model;
  const models::model& files;
  std::shared_ptr<const models::checkpoint> weights; ///< converted for computing
  std::optional<decoder_runner> runner;
  form_reader forms;

  explicit impl(const small_model& of) : model(of), files(*of.files), forms(of) {
    const auto choice = models::resolve_compute(model.options.model.compute, model.options.kv.type,
                                                files.spec, *files.weights, shared_device().info());
    demand(choice.ok(), choice.ok() ? "" : choice.detail());
    models::decoder_options options;
    options.compute = choice.value().compute;
    options.kv_type = choice.value().kv_type;
    options.block_tokens = block_tokens;
    options.n_blocks = pass_tokens / block_tokens;
    options.max_step_tokens = options.max_logit_rows = pass_tokens;
    options.max_sequences = 1;
    weights =
        models::weights_for(options.compute, files.spec, files.weights, shared_device().info());
    runner.emplace(files.spec, *weights, options);
  }

  plain_request read(const actors::request& asked) const;
  void check_start(const actors::request& asked, const plain_request& plain,
                   const actors::event& first);
  void check_scores(const actors::request& asked, const plain_request& plain,
                    const std::vector<actors::token_output>& scores);
  void check_choice(const actors::request& asked, const plain_request& plain, std::size_t choice,
                    const plain_output& output);
  void check_text(const actors::request& asked, const plain_request& plain,
                  const plain_output& output, bool grammar_over) const;
  std::size_t check_parts(const plain_request& plain, const plain_output& output,
                          const std::string& text) const;
  plain_draw draw_of(const actors::request& asked, const plain_request& plain,
                     const ids& before) const;
  void check_logprobs(const logit_row& logits, const actors::token_output& token,
                      std::int32_t n_top) const;

  /// Logits after each of these tokens, from one pass.
  std::vector<logit_row> pass(const ids& all, std::size_t prompt) {
    const auto rows = runner->step({{0, all, true, static_cast<int>(prompt)}});
    runner->release(0);
    return rows;
  }
};

plain_request reference::impl::read(const actors::request& asked) const {
  plain_request plain;
  std::string written;
  if (const auto* list = std::get_if<actors::token_prompt>(&asked.prompt)) {
    plain.prompt = *list;
  } else if (const auto* text = std::get_if<actors::text_prompt>(&asked.prompt)) {
    models::encode_options how;
    how.add_special = text->add_special;
    how.parse_special = true;
    plain.prompt = files.text->encode(text->text, how).value();
    written = text->text;
  } else {
    const auto& chat = std::get<actors::chat_prompt>(asked.prompt);
    auto kept = asked;
    if (chat.drop_turns_for_output >= 0)
      kept.prompt =
          newest_turns_of(model.chats, *files.text, asked,
                          static_cast<std::size_t>(context_of(model) - chat.drop_turns_for_output));
    const auto prompt = write_chat(model.chats, kept);
    plain.prompt = files.text->encode_prompt(prompt.text, prompt.literal).value();
    written = prompt.text;
    plain.is_chat = true;
  }
  plain.form = form_of(model, asked, written);
  if (const auto most = static_cast<std::size_t>(asked.truncate_prompt_tokens); most > 0)
    while (plain.prompt.size() > most)
      plain.prompt.erase(plain.prompt.begin());
  const auto& s = asked.sampling;
  plain.ends.insert(s.stop_token_ids.begin(), s.stop_token_ids.end());
  if (!s.ignore_eos) plain.ends.insert(files.text->end_ids().begin(), files.text->end_ids().end());
  for (std::string word : s.bad_words) {
    while (word.starts_with(' '))
      word.erase(0, 1);
    const ids plainly = files.text->encode(word, {}).value();
    const ids spaced = files.text->encode(" " + word, {}).value();
    if (!plainly.empty()) plain.bad_words.push_back(plainly);
    if (!spaced.empty() &&
        (plainly.empty() || (spaced.size() == plainly.size() && spaced.front() != plainly.front())))
      plain.bad_words.push_back(spaced);
  }
  const auto& limits = model.options.limits;
  const std::int32_t room = context_of(model) - static_cast<std::int32_t>(plain.prompt.size());
  plain.max_new = s.max_tokens >= 0 ? s.max_tokens
                  : plain.is_chat   ? std::min(limits.default_max_tokens, room)
                                    : room;
  return plain;
}

plain_draw reference::impl::draw_of(const actors::request& asked, const plain_request& plain,
                                    const ids& before) const {
  const auto& s = asked.sampling;
  plain_draw draw;
  draw.params = &s;
  if (s.repetition_penalty != 1 || s.presence_penalty != 0 || s.frequency_penalty != 0) {
    std::map<std::int32_t, gpu::token_count> counts;
    for (const auto id : plain.prompt)
      counts.try_emplace(id, gpu::token_count{id, 0, 0}).first->second.in_prompt += 1;
    for (const auto id : before)
      counts.try_emplace(id, gpu::token_count{id, 0, 0}).first->second.in_output += 1;
    for (const auto& [id, count] : counts)
      draw.counts.push_back(count);
  }
  std::map<std::int32_t, float> biases;
  for (const auto& [id, bias] : s.logit_bias)
    biases[id] += bias;
  if (before.size() < static_cast<std::size_t>(s.min_tokens)) {
    for (const auto id : plain.ends)
      biases[id] = -inf;
    if (plain.form.grammar)
      for (const auto id : files.text->end_ids())
        biases[id] = -inf;
  }
  for (const ids& word : plain.bad_words) {
    const std::size_t n = word.size() - 1;
    if (n <= before.size() && std::equal(before.end() - static_cast<std::ptrdiff_t>(n),
                                         before.end(), word.begin(), word.end() - 1))
      biases[word.back()] = -inf;
  }
  for (const auto& [id, bias] : biases)
    draw.biases.push_back({id, bias});
  draw.position = plain.prompt.size() + before.size();
  draw.seed = 0;
  if (!s.allowed_token_ids.empty()) {
    const auto n = std::max<std::size_t>(static_cast<std::size_t>(files.spec.vocab_size),
                                         static_cast<std::size_t>(files.text->vocab_size()));
    draw.mask.assign((n + 31) / 32, 0);
    for (const auto id : s.allowed_token_ids)
      draw.mask[static_cast<std::size_t>(id) / 32] |= 1U << (id % 32);
  }
  return draw;
}

void reference::impl::check_logprobs(const logit_row& logits, const actors::token_output& token,
                                     std::int32_t n_top) const {
  const auto expected = log_probabilities(logits);
  const auto near = [&](const actors::token_logprob& t) {
    return std::abs(double{t.logprob} - expected[static_cast<std::size_t>(t.id)]) < 1e-4 &&
           t.bytes == files.text->token_bytes(t.id, true);
  };
  demand(near(token.chosen),
         "the score of token " + std::to_string(token.chosen.id) + " is " +
             std::to_string(token.chosen.logprob) + ", expected " +
             std::to_string(expected[static_cast<std::size_t>(token.chosen.id)]));
  const ids wanted = likeliest(logits, static_cast<std::size_t>(n_top));
  demand_equal(token.top.size(), wanted.size(), "the number of alternatives");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    demand_equal(token.top[i].id, wanted[i], "alternative " + std::to_string(i));
    demand(near(token.top[i]), "the score of alternative " + std::to_string(i) + " is wrong");
  }
}

void reference::impl::check_scores(const actors::request& asked, const plain_request& plain,
                                   const std::vector<actors::token_output>& scores) {
  if (asked.prompt_logprobs < 0) return demand(scores.empty(), "scores of a prompt come unasked");
  demand_equal(scores.size(), plain.prompt.size(), "the number of scored prompt tokens");
  const auto rows = pass(plain.prompt, plain.prompt.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    demand_equal(scores[i].chosen.id, plain.prompt[i], "a scored prompt token");
    if (i > 0) check_logprobs(rows[i - 1], scores[i], asked.prompt_logprobs);
  }
  demand(std::isnan(scores[0].chosen.logprob) && scores[0].top.empty(),
         "the first token has a score");
}

void reference::impl::check_start(const actors::request& asked, const plain_request& plain,
                                  const actors::event& first) {
  demand(first.started, "the first event is not the one that starts");
  demand(first.prompt_ids == (asked.echo_prompt_ids ? plain.prompt : ids{}),
         "the echoed prompt is another one");
  demand_equal(first.use.prompt_tokens, static_cast<std::int32_t>(plain.prompt.size()),
               "the number of prompt tokens");
  check_scores(asked, plain, first.prompt_scores);
}

void reference::impl::check_choice(const actors::request& asked, const plain_request& plain,
                                   std::size_t choice, const plain_output& output) {
  const auto& s = asked.sampling;
  demand(output.finish.has_value(), "a choice has no end");
  if (s.max_tokens == 0) {
    demand(output.tokens.empty() && *output.finish == actors::finish_reason::length,
           "a prompt alone has an output");
    return;
  }
  const std::size_t n = output.tokens.size();
  demand(n > 0, "an output is empty");
  ids all = plain.prompt;
  const ids drawn = output.first(n);
  all.insert(all.end(), drawn.begin(), drawn.end());
  const auto rows = pass(all, plain.prompt.size());
  bool over = false;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string which = "token " + std::to_string(i) + " of choice " +
                              std::to_string(choice) + " (" + std::to_string(drawn[i]) + ")";
    demand(!over, which + " comes after the grammar's end");
    const ids before = output.first(i);
    plain_draw draw = draw_of(asked, plain, before);
    draw.seed = s.seed.value_or(0) + choice; // without one, the likeliest is chosen
    if (plain.form.grammar) draw.mask = forms.after(plain.form, before).mask;
    const logit_row& logits = rows[plain.prompt.size() - 1 + i];
    const std::string why = draw.refuses(logits, drawn[i]);
    demand(why.empty(), which + " cannot have been drawn: " + why);
    demand_equal(drawn[i], draw.token_of(shared_device(), logits), which);
    if (s.logprobs >= 0)
      check_logprobs(logits, output.tokens[i], s.logprobs);
    else
      demand(output.tokens[i].top.empty(), which + " has alternatives unasked");
    if (plain.form.grammar) over = forms.after(plain.form, output.first(i + 1)).over;
  }
  check_text(asked, plain, output, over);
}

void reference::impl::check_text(const actors::request& asked, const plain_request& plain,
                                 const plain_output& output, bool grammar_over) const {
  const auto& s = asked.sampling;
  const std::size_t n = output.tokens.size();
  const ids drawn = output.first(n);
  const auto text_of = [&](std::size_t end, bool whole) {
    std::string bytes, text;
    bool at_start = plain.is_chat; // the first space of a text of its own is dropped
    for (std::size_t t = 0; t < end; ++t) {
      const auto& shown = plain.form.shown;
      const bool special =
          !s.skip_special_tokens || std::find(shown.begin(), shown.end(), drawn[t]) != shown.end();
      std::string one = files.text->token_bytes(drawn[t], special);
      if (!one.empty() && std::exchange(at_start, false) &&
          files.text->drops_leading_space(drawn[t]))
        one.erase(0, 1);
      bytes += one;
    }
    models::take_utf8(bytes, text);
    return whole && !bytes.empty() ? text + "\xEF\xBF\xBD" : text;
  };
  // Find the first token at which the output must end, and the reason.
  std::size_t ended = 0;
  std::string found, text;
  bool by_id = false, by_length = false;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t count = i + 1;
    by_id = plain.ends.contains(drawn[i]) || (grammar_over && count == n);
    by_length = static_cast<std::int32_t>(count) == plain.max_new;
    const std::size_t shown = by_id && !s.include_stop_str_in_output ? i : count;
    text = text_of(shown, by_id || by_length);
    // Before min_tokens nothing ends the output, and a stop string must begin after that text.
    const auto quiet = static_cast<std::size_t>(std::max(s.min_tokens - 1, 0));
    const std::size_t from = text_of(std::min(quiet, shown), false).size();
    std::size_t best = std::string::npos, begin = 0;
    if (static_cast<std::int32_t>(count) >= s.min_tokens)
      for (const std::string& stop : s.stop) {
        const auto at = text.find(stop, from);
        if (at == std::string::npos) continue;
        const auto end = at + stop.size();
        if (best != std::string::npos && (end > best || (end == best && at >= begin))) continue;
        best = end;
        begin = at;
        found = stop;
      }
    if (best != std::string::npos) text.resize(s.include_stop_str_in_output ? best : begin);
    if (best != std::string::npos || by_id || by_length) {
      ended = count;
      break;
    }
  }
  demand_equal(ended, n, "the token with which the output ends");
  if (found.empty() && by_id && s.min_tokens > 0 && !plain.form.grammar)
    demand(static_cast<std::int32_t>(n) > s.min_tokens, "the output ends before min_tokens");
  std::size_t n_calls = 0;
  if (asked.parse_output)
    n_calls = check_parts(plain, output, std::exchange(text, ""));
  else
    demand(output.parts.empty(), "an output comes in parts unasked");
  demand(output.text == text, "the text is \"" + output.text + "\", expected \"" + text + "\"");
  demand(output.stop_string == found,
         "the stop string is \"" + output.stop_string + "\", expected \"" + found + "\"");
  demand_equal(output.stop_token, found.empty() && by_id ? drawn.back() : -1,
               "the id that stopped");
  const auto stopped =
      n_calls > 0 ? actors::finish_reason::tool_calls : actors::finish_reason::stop;
  const auto finish = !found.empty() || by_id ? stopped : actors::finish_reason::length;
  demand(*output.finish == finish, "the output ends for another reason");
}

/// Checks the parts of an output with this text, and returns how many whole calls it has.
std::size_t reference::impl::check_parts(const plain_request& plain, const plain_output& output,
                                         const std::string& text) const {
  const auto& reading = plain.form.reading;
  demand(output.parts == parse_whole(reading, text),
         "the parts are not those of the text \"" + text + "\"");
  const auto seen = summary(output.parts);
  std::size_t n_whole = 0;
  for (const auto& call : seen.calls) {
    n_whole += call.complete ? 1 : 0;
    demand(reading.names.empty() || std::find(reading.names.begin(), reading.names.end(),
                                              call.name) != reading.names.end(),
           "a call of \"" + call.name + "\", which may not be called");
    const bool is_json = !call.complete || models::parse_json(call.arguments, "a call").ok();
    demand(is_json, "the arguments of a call are no JSON: " + call.arguments);
  }
  if (reading.only_calls) demand(seen.text.empty(), "text beside calls: " + seen.text);
  if (plain.form.one_call) demand(seen.calls.size() <= 1, "more than one call");
  return n_whole;
}

reference::reference(const small_model& model) : impl_(std::make_unique<impl>(model)) {}
reference::~reference() = default;

void reference::check(const actors::request& asked, const std::vector<actors::event>& events) {
  demand(!events.empty() && events.back().last, "the last event is missing");
  const plain_request plain = impl_->read(asked);
  impl_->check_start(asked, plain, events.front());
  std::vector<plain_output> choices(static_cast<std::size_t>(asked.sampling.n));
  std::int32_t n_tokens = 0;
  for (std::size_t i = 1; i < events.size(); ++i) {
    const auto& e = events[i];
    plain_output& to = choices.at(static_cast<std::size_t>(e.choice));
    demand(!to.finish.has_value(), "an event comes after the end of its choice");
    to.tokens.insert(to.tokens.end(), e.tokens.begin(), e.tokens.end());
    n_tokens += static_cast<std::int32_t>(e.tokens.size());
    to.text += e.text;
    join(to.parts, events_of(e.parts));
    to.finish = e.finish;
    to.stop_string = e.stop_string;
    to.stop_token = e.stop_token;
    demand_equal(e.use.completion_tokens, n_tokens, "the number of output tokens");
  }
  for (std::size_t c = 0; c < choices.size(); ++c)
    impl_->check_choice(asked, plain, c, choices[c]);
}

} // namespace twill::test
