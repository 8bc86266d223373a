#include "actors/trace/scheduler_trace.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "actors/kv/cache_scope.hpp"
#include "actors/port/error_words.hpp"
#include "config/base/id_ranges.hpp"
#include "config/base/log.hpp"

namespace twill::actors {

namespace {

/// JSON members, one after the other.
class members {
public:
  explicit members(const char* what) { text("e", what); }

  members& text(const char* name, std::string_view value) {
    begin(name);
    log::append_json_string(body_, value);
    return *this;
  }
  members& number(const char* name, std::int64_t value) {
    begin(name) += std::to_string(value);
    return *this;
  }
  members& id(const char* name, std::uint64_t value) {
    begin(name) += std::to_string(value);
    return *this;
  }
  /// The shortest text that reads back as the same number.
  members& real(const char* name, double value) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    begin(name).append(digits.data(), end);
    return *this;
  }
  members& yes(const char* name, bool value) {
    if (value) begin(name) += "true";
    return *this;
  }
  /// Leaves out an empty list.
  members& list(const char* name, const std::string& value) {
    return value.empty() ? *this : text(name, value);
  }
  members& limits(const batcher_limits& l) {
    number("step_tokens", l.plan.max_step_tokens).number("running", l.plan.max_running);
    number("block_tokens", l.plan.block_tokens).yes("prefix_cache", l.plan.prefix_cache);
    yes("copies_blocks", l.plan.copies_blocks);
    number("mixed_tokens", l.plan.mixed_prompt_tokens).number("logit_rows", l.plan.max_logit_rows);
    real("gap_target", l.gap_target_s).number("queued", l.max_queued).yes("fair", l.fair);
    return number("blocks", l.total_blocks).number("shareable", l.shareable_length);
  }
  const std::string& body() const { return body_; }

private:
  std::string& begin(const char* name) {
    if (!body_.empty()) body_ += ',';
    return body_.append("\"").append(name).append("\":");
  }
  std::string body_;
};

std::string hex(std::uint64_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; value >>= 4)
    text[i] = "0123456789abcdef"[value & 15];
  return text;
}

/// A block's hash shortened to 31 bits, so that it fits a token id. It identifies the block among
/// those with equal preceding blocks.
std::string short_hash(const block_key& key) {
  return hex(key.first & 0x7fffffff, 8);
}

} // namespace

scheduler_trace::scheduler_trace(trace_sink& sink)
    : sink_(sink), start_(steady_clock::now()), key_(draw_hash_key()) {}

void scheduler_trace::take(const batcher_limits& limits) {
  block_tokens_ = limits.plan.block_tokens;
  hashes_ = limits.plan.prefix_cache;
}

void scheduler_trace::begin(const std::string& model, const batcher_limits& limits,
                            bool has_tiers) {
  take(limits);
  const auto unix_s = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  members m("begin");
  m.number("version", 3).number("unix_s", unix_s).text("model", model).yes("tiers", has_tiers);
  saw(m.limits(limits).body());
}

void scheduler_trace::executor_ready(std::uint64_t generation, const batcher_limits& limits) {
  take(limits);
  saw(members("ready").id("life", generation).limits(limits).body());
}

/// Adds a token; returns whether it completes a block.
bool scheduler_trace::extend(beginning& of, std::int32_t token) const {
  of.tail.push_back(token);
  if (of.tail.size() < static_cast<std::size_t>(block_tokens_)) return false;
  of.key = key_after(key_, of.key, of.tail);
  of.tail.clear();
  return true;
}

/// Adds tokens; returns the hashes of the blocks that they complete.
std::string scheduler_trace::extend_all(beginning& of, std::span<const std::int32_t> tokens) const {
  std::string hashes;
  if (!hashes_) return hashes;
  for (const std::int32_t token : tokens)
    if (extend(of, token)) hashes += short_hash(of.key);
  return hashes;
}

void scheduler_trace::arrived(const submit_prompt& prompt) {
  const sequence_spec& spec = prompt.spec;
  arrived_.assign(1, {});
  const std::string hashes = extend_all(arrived_.front(), *spec.prompt);
  std::string scope, made;
  if (prompt.made != nullptr) {
    arrived_.assign(static_cast<std::size_t>(prompt.n_choices), arrived_.front());
    for (std::int32_t choice = 0; choice < prompt.n_choices; ++choice) {
      if (choice > 0) made += ',';
      const auto tokens = prompt.made_of(choice);
      made += prompt.is_over(choice)
                  ? "over"
                  : std::to_string(tokens.size()) + ":" +
                        extend_all(arrived_[static_cast<std::size_t>(choice)], tokens);
    }
  }
  if (hashes_) {
    const std::array<std::int32_t, 2> halves{
        static_cast<std::int32_t>(spec.cache_scope & 0xffffffff),
        static_cast<std::int32_t>(spec.cache_scope >> 32)};
    if (spec.cache_scope != 0) scope = hex(key_after(key_, {}, halves).second, 16);
  }
  members m("arrive");
  m.id("r", prompt.request).text("client", prompt.client);
  m.number("prompt", static_cast<std::int64_t>(spec.prompt->size())).number("new", spec.max_new);
  if (prompt.n_choices != 1) m.number("choices", prompt.n_choices);
  if (prompt.priority != 0) m.number("priority", prompt.priority);
  if (prompt.limits.weight != 1) m.number("weight", prompt.limits.weight);
  if (prompt.limits.max_running != 0) m.number("running", prompt.limits.max_running);
  if (prompt.limits.max_queued != 0) m.number("queued", prompt.limits.max_queued);
  m.yes("asked", spec.sampling->max_tokens >= 0).yes("scored", spec.needs_all_rows());
  saw(m.list("scope", scope).list("blocks", hashes).list("made", made).body());
}

void scheduler_trace::queued(sequence_id first, const submit_prompt& prompt) {
  if (!hashes_) return;
  for (std::int32_t choice = 0; choice < prompt.n_choices; ++choice)
    if (!prompt.is_over(choice)) // a finished choice has no sequence
      beginnings_[first + static_cast<sequence_id>(choice)] =
          arrived_[std::min(static_cast<std::size_t>(choice), arrived_.size() - 1)];
}

void scheduler_trace::saw_order(const char* what, request_id request) {
  saw(members(what).id("r", request).body());
}
void scheduler_trace::choice_finished(request_id request, std::int32_t choice) {
  saw(members("finish").id("r", request).number("choice", choice).body());
}
void scheduler_trace::released(request_id request) {
  saw_order("release", request);
}
void scheduler_trace::paused(request_id request) {
  saw_order("pause", request);
}
void scheduler_trace::resumed(request_id request) {
  saw_order("resume", request);
}
void scheduler_trace::waited_too_long(request_id request) {
  saw_order("late", request);
}

void scheduler_trace::fetched(std::uint64_t fetch_id, std::size_t n_blocks,
                              steady_clock::time_point now) {
  members m("fetched");
  m.id("ticket", fetch_id).number("n", static_cast<std::int64_t>(n_blocks));
  sink_.saw(at(now), m.body());
}

void scheduler_trace::granted(const kv_grant& grant, steady_clock::time_point now) {
  std::string tier_keys;
  bool any = false;
  for (const prefix_match& match : grant.matches) {
    if (!tier_keys.empty()) tier_keys += ',';
    tier_keys += std::to_string(match.tier_keys.size());
    any = any || !match.tier_keys.empty();
  }
  id_ranges spilled;
  for (const block_spill& s : grant.spills)
    spilled.add(static_cast<std::uint64_t>(s.block));
  members m("granted");
  sink_.saw(at(now), m.list("beyond", any ? tier_keys : "").list("spill", spilled.text()).body());
}

void scheduler_trace::step_done(const step_plan& plan, const step_result& result,
                                steady_clock::time_point now) {
  id_ranges skipped, stopped, no_allowed_token;
  std::string hashes;
  auto drawn = result.drawn.begin();
  auto left_out = result.skipped.begin();
  for (const planned_row& row : plan.rows) {
    const bool was_left_out = left_out != result.skipped.end() && *left_out == row.id;
    if (was_left_out) ++left_out;
    if (!row.draws && !was_left_out) continue;
    if (was_left_out || drawn == result.drawn.end() || drawn->id != row.id) {
      skipped.add(row.id);
      continue;
    }
    if (drawn->stopped) stopped.add(row.id);
    if (drawn->no_allowed_token) no_allowed_token.add(row.id);
    const auto found = beginnings_.find(row.id);
    if (found != beginnings_.end() && extend(found->second, drawn->token))
      hashes += (hashes.empty() ? "" : ",") + std::to_string(row.id) + ":" +
                short_hash(found->second.key);
    ++drawn;
  }
  members m("done");
  m.id("life", result.generation).id("n", result.number).real("seconds", result.seconds);
  if (result.copy_seconds != 0) m.real("copying", result.copy_seconds);
  m.list("skipped", skipped.text())
      .list("stopped", stopped.text())
      .list("stuck", no_allowed_token.text());
  sink_.saw(at(now), m.list("blocks", hashes).body());
}

void scheduler_trace::step_failed(std::uint64_t generation) {
  saw(members("failed").id("life", generation).body());
}

void scheduler_trace::planned(const step_plan& plan, std::int32_t preempted) {
  id_ranges rows, opened;
  for (const planned_row& row : plan.rows) {
    if (row.n_tokens == 1 && row.draws)
      rows.add(row.id);
    else
      rows.add_text(std::to_string(row.id) + ":" + std::to_string(row.first_position) + "+" +
                    std::to_string(row.n_tokens) + (row.draws ? "*" : ""));
  }
  for (const open_sequence& o : plan.opens) {
    if (o.blocks.empty())
      opened.add(o.id);
    else
      opened.add_text(std::to_string(o.id) + ":" + std::to_string(o.blocks.size()) + "@" +
                      std::to_string(o.blocks.front()));
  }
  id_ranges grown, spilled, loaded, copied;
  for (const lease_growth& g : plan.grows)
    grown.add_text(std::to_string(g.id) + "+" + std::to_string(g.n_blocks));
  for (const block_spill& s : plan.spills)
    spilled.add(static_cast<std::uint64_t>(s.block));
  for (const block_load& l : plan.loads)
    loaded.add(static_cast<std::uint64_t>(l.block));
  for (const block_copy& c : plan.copies)
    copied.add_text(std::to_string(c.from) + ">" + std::to_string(c.to));
  members m("plan");
  m.id("life", plan.generation).id("n", plan.number);
  m.list("close", range_text(plan.closes)).list("open", opened.text()).list("rows", rows.text());
  m.list("grow", grown.text()).list("blocks", range_text(plan.blocks));
  m.list("spill", spilled.text()).list("load", loaded.text());
  m.list("copy", copied.text());
  if (preempted > 0) m.number("preempted", preempted);
  sink_.decided(at(steady_clock::now()), m.body());
}

void scheduler_trace::ended(request_id request, const request_error& why) {
  members m("end");
  sink_.decided(at(steady_clock::now()), m.id("r", request).text("why", word_of(why.code)).body());
}

} // namespace twill::actors
