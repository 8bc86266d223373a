#include "actors/trace/replayed_batcher.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "actors/kv/apply_change.hpp"
#include "actors/kv/grant_blocks.hpp"
#include "models/errc.hpp"

namespace twill::actors {

namespace {

constexpr std::int64_t most_tokens = 1 << 24;
/// The most tokens of all live prompts together; they take a gigabyte.
constexpr std::size_t most_live_tokens = std::size_t{1} << 28;

std::uint64_t from_hex(std::string_view digits) {
  std::uint64_t n = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), n, 16);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    throw bad_trace("a hash must be hexadecimal digits");
  return n;
}

/// Turns a block's hash into a token id, which is used as the last of the block's tokens.
std::int32_t token_of(std::string_view digits) {
  return static_cast<std::int32_t>(from_hex(digits) & 0x7fffffff);
}

/// A trace has hashes of full blocks instead of their tokens. Sets the last token of each full
/// block to that block's hash, so that equal blocks have equal tokens. `tokens` follow `n_before`
/// other tokens of the sequence, so the first block may have begun before `tokens`.
void set_hashes(std::vector<std::int32_t>& tokens, std::size_t n_before, std::size_t width,
                std::string_view hashes) {
  constexpr std::size_t digits = 8;
  const std::size_t first = n_before / width;
  const std::size_t n_full = (n_before + tokens.size()) / width - first;
  if (hashes.size() % digits != 0 || hashes.size() / digits > n_full)
    throw bad_trace("a list of hashes must have 8 digits for each full block");
  for (std::size_t i = 0; i < hashes.size() / digits; ++i)
    tokens[(first + i + 1) * width - 1 - n_before] = token_of(hashes.substr(i * digits, digits));
}

/// Parses "12:0badcafe,13:..." into a map from the number before the colon to the hash.
std::unordered_map<sequence_id, std::int32_t> hashes_of(std::string_view text) {
  std::unordered_map<sequence_id, std::int32_t> all;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos)
      throw bad_trace("a hash must follow its sequence's number");
    const number_ranges number(item.substr(0, colon));
    if (number.ranges().size() != 1) throw bad_trace("a hash must follow its sequence's number");
    all[number.ranges().front().first] = token_of(item.substr(colon + 1));
  }
  return all;
}

bool is_digit(char c) {
  return '0' <= c && c <= '9';
}

/// Removes the numbers of blocks from a plan's line. Batchers of version 2 requested the blocks of
/// one plan at a time, so their block numbers differ.
void leave_out_blocks(std::string& plan) {
  for (const std::string_view name : {R"(,"blocks":")", R"(,"copy":")"}) {
    const std::size_t begin = plan.find(name);
    if (begin == std::string::npos) continue;
    const std::size_t end = std::min(plan.find('"', begin + name.size()), plan.size() - 1);
    plan.erase(begin, end + 1 - begin);
  }
  // In the list of opened sequences, `@` precedes the first block.
  bool in_number = false;
  std::erase_if(plan, [&](char c) { return in_number = c == '@' || (in_number && is_digit(c)); });
}

/// The part of `text` around the position where it differs from another text, short enough to read.
std::string excerpt(const std::string& text, std::size_t differs) {
  constexpr std::size_t before = 200, most = 800;
  const std::size_t begin = text.size() <= most || differs <= before ? 0 : differs - before;
  return (begin > 0 ? "..." : "") + text.substr(begin, most) +
         (begin + most < text.size() ? "..." : "");
}

} // namespace

replayed_batcher::replayed_batcher(const trace_line& begin)
    : limits_(begin.limits()), has_tiers_(begin.yes("tiers")),
      answers_at_once_(begin.number("version") == 2), trace_(*this),
      pool_(static_cast<std::int32_t>(limits_.total_blocks), limits_.plan.block_tokens),
      core_(limits_, stats_, *this, has_tiers_ ? this : nullptr, trace_) {
  if (answers_at_once_ && has_tiers_)
    throw bad_trace("a trace of version 2 of a scheduler with KV tiers cannot be replayed");
}

void replayed_batcher::see(const trace_line& line) {
  if (!decisions_.empty())
    throw other_decision("the trace goes on with another input, where the replay decides\n  " +
                         excerpt(decisions_.front(), 0));
  if (line.what() == "granted" && !grant_)
    throw other_decision("the trace has an answer of the allocator, and the replay has not asked");
  time_ = std::chrono::nanoseconds(line.number("t"));
  try {
    feed(line);
    pump();
  } catch (const std::out_of_range&) {
    throw other_decision("the trace speaks of a sequence that the replay does not have");
  }
}

void replayed_batcher::compare(const trace_line& line) {
  std::string recorded(line.body());
  if (decisions_.empty())
    throw other_decision("recorded:\n  " + excerpt(recorded, 0) + "\nreplayed: nothing");
  std::string& replayed = decisions_.front();
  if (answers_at_once_) {
    leave_out_blocks(recorded);
    leave_out_blocks(replayed);
  }
  if (replayed != recorded) {
    const auto shorter = static_cast<std::ptrdiff_t>(std::min(recorded.size(), replayed.size()));
    const auto parts =
        std::mismatch(recorded.begin(), recorded.begin() + shorter, replayed.begin()).first;
    const auto differs = static_cast<std::size_t>(parts - recorded.begin());
    throw other_decision("recorded:\n  " + excerpt(recorded, differs) + "\nreplayed:\n  " +
                         excerpt(replayed, differs));
  }
  decisions_.pop_front();
}

void replayed_batcher::feed(const trace_line& line) {
  const std::string& what = line.what();
  const request_id request = line.id("r");
  if (what == "arrive") return arrive(line);
  if (what == "done") return finish_step(line);
  if (what == "finish") return core_.finish_choice(request, line.small("choice"));
  if (what == "release") return core_.release(request);
  if (what == "pause") return core_.pause(request);
  if (what == "resume") return core_.resume(request);
  if (what == "late") return core_.waited_too_long(request);
  if (what == "ready") return be_ready(line);
  if (what == "ignored") return;
  if (what == "granted") return grant(line);
  if (what == "fetched") {
    blocks_fetched answer{line.id("ticket"), {}};
    // An answer that came after its fetch was given up is ignored.
    if (const auto asked = asked_.extract(answer.fetch_id)) {
      const auto most = static_cast<std::int64_t>(asked.mapped());
      answer.blocks.resize(static_cast<std::size_t>(line.number("n", 0, most)));
    }
    return core_.fetched(std::move(answer), now());
  }
  if (what == "failed") {
    if (line.id("life") != generation_ || generation_ == 0)
      throw other_decision("the trace has a failed step of another life of the executor");
    outstanding_.clear();
    generation_ = 0;
    return core_.step_failed(line.id("life"), "as in the trace");
  }
  throw bad_trace("`e` must be one of the words that twilld writes, got \"" + what + "\"");
}

void replayed_batcher::be_ready(const trace_line& line) {
  batcher_limits limits = line.limits();
  if (limits.plan.block_tokens != limits_.plan.block_tokens)
    throw bad_trace("`block_tokens` must stay what it was");
  outstanding_.clear();
  generation_ = static_cast<std::uint64_t>(line.number("life", 1));
  core_.executor_ready(generation_, limits);
}

/// Parses "12:HASHES,over", which has an entry for each choice.
std::vector<made_choice> replayed_batcher::read_made(std::string_view text,
                                                     const submit_prompt& of) {
  std::vector<made_choice> all;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const auto item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    made_choice& one = all.emplace_back();
    one.finished = item == "over";
    if (one.finished) continue;
    const auto colon = std::min(item.find(':'), item.size());
    std::int32_t n = 0;
    const auto read = std::from_chars(item.data(), item.data() + colon, n);
    if (colon == item.size() || read.ec != std::errc() || read.ptr != item.data() + colon ||
        n < 0 || n >= of.spec.max_new)
      throw bad_trace("an entry of `made` must be `over`, or a number below `new` and a colon");
    take_live(of.request, static_cast<std::size_t>(n));
    one.tokens.resize(static_cast<std::size_t>(n));
    set_hashes(one.tokens, of.spec.prompt->size(),
               static_cast<std::size_t>(limits_.plan.block_tokens), item.substr(colon + 1));
  }
  const bool all_over =
      std::all_of(all.begin(), all.end(), [](const made_choice& one) { return one.finished; });
  if (all.size() != static_cast<std::size_t>(of.n_choices) || all_over)
    throw bad_trace("`made` must have an entry for each choice, not all of them over");
  return all;
}

/// Adds a request's tokens to those of all live requests, which are bounded.
void replayed_batcher::take_live(request_id request, std::size_t n_tokens) {
  live_[request] += n_tokens;
  if ((live_tokens_ += n_tokens) > most_live_tokens)
    throw bad_trace("its prompts must be of " + std::to_string(most_live_tokens) +
                    " tokens at most at a time");
}

void replayed_batcher::arrive(const trace_line& line) {
  submit_prompt order;
  order.request = line.id("r");
  const auto n_prompt = static_cast<std::size_t>(line.number("prompt", 1, most_tokens));
  if (live_.contains(order.request))
    throw bad_trace("request " + std::to_string(order.request) + " arrives twice");
  take_live(order.request, n_prompt);
  std::vector<std::int32_t> prompt(n_prompt);
  const auto width = static_cast<std::size_t>(limits_.plan.block_tokens);
  set_hashes(prompt, 0, width, line.text("blocks"));
  order.spec.prompt = std::make_shared<const std::vector<std::int32_t>>(std::move(prompt));
  order.spec.max_new = line.small("new", 1, most_tokens);
  config::sampling_params sampling;
  sampling.max_tokens = line.yes("asked") ? order.spec.max_new : -1;
  order.spec.sampling = std::make_shared<const config::sampling_params>(sampling);
  order.spec.prompt_logprobs = line.yes("scored") ? 0 : -1;
  if (const std::string scope = line.text("scope"); !scope.empty())
    order.spec.cache_scope = from_hex(scope);
  order.n_choices = std::max(line.small("choices", 0, 4096), 1);
  if (const std::string made = line.text("made"); !made.empty())
    order.made = std::make_shared<const std::vector<made_choice>>(read_made(made, order));
  order.priority =
      static_cast<std::int32_t>(line.number("priority", std::numeric_limits<std::int32_t>::min(),
                                            std::numeric_limits<std::int32_t>::max()));
  order.client = line.text("client");
  order.limits.weight = std::max(line.small("weight", 0, 1 << 20), 1);
  order.limits.max_running = line.small("running", 0, most_tokens);
  order.limits.max_queued = line.small("queued", 0, most_tokens);
  core_.submit(order);
}

void replayed_batcher::finish_step(const trace_line& line) {
  const std::uint64_t number = line.id("n");
  if (outstanding_.empty() || line.id("life") != generation_ ||
      outstanding_.front()->number != number)
    throw other_decision("the trace has the result of step " + std::to_string(number) +
                         ", which is not what the replay waits for");
  const step_plan_ptr plan = outstanding_.front();
  outstanding_.pop_front();
  const number_ranges skipped = line.numbers("skipped");
  const number_ranges stopped = line.numbers("stopped");
  const number_ranges no_allowed_token = line.numbers("stuck");
  const auto hashes = hashes_of(line.text("blocks"));
  step_result result;
  result.generation = plan->generation;
  result.number = plan->number;
  result.seconds = line.real("seconds");
  result.copy_seconds = line.real("copying");
  for (const planned_row& row : plan->rows) {
    if (skipped.contains(row.id)) {
      result.skipped.push_back(row.id);
      continue;
    }
    if (!row.draws) continue;
    drawn_token drawn;
    drawn.id = row.id;
    drawn.stopped = stopped.contains(row.id);
    drawn.no_allowed_token = no_allowed_token.contains(row.id);
    if (const auto hash = hashes.find(row.id); hash != hashes.end()) drawn.token = hash->second;
    result.drawn.push_back(drawn);
  }
  core_.step_done(result, now());
}

/// The allocator's answer has come; the line has the tiers' part of it.
void replayed_batcher::grant(const trace_line& line) {
  kv_grant grant = *std::exchange(grant_, std::nullopt);
  std::size_t match = 0;
  const number_ranges tier_keys = line.numbers("beyond");
  for (const auto& [n, last] : tier_keys.ranges()) {
    if (match == grant.matches.size() || n > most_tier_keys_[match])
      throw other_decision("the tiers have more blocks than the replay asks for");
    grant.matches[match++].tier_keys.resize(static_cast<std::size_t>(n));
  }
  const auto n_blocks = static_cast<std::uint64_t>(pool_.total());
  const number_ranges spilled = line.numbers("spill");
  for (const auto& [first, last] : spilled.ranges())
    for (std::uint64_t block = first; block <= last; ++block) {
      if (block >= n_blocks || grant.spills.size() >= n_blocks)
        throw bad_trace("`spill` must name blocks of the device, each once");
      grant.spills.push_back({static_cast<std::int32_t>(block), {}, {}});
    }
  core_.granted(std::move(grant), now());
}

void replayed_batcher::forgotten(request_id request) {
  const auto left = live_.find(request);
  if (left == live_.end()) return;
  live_tokens_ -= left->second;
  live_.erase(left);
}

/// Does what the batcher's actor does. The allocator's part is applied at once, but its answer
/// comes with its line of the trace.
void replayed_batcher::pump() {
  core_.take_departed(); // the trace records which rows were skipped
  if (answers_at_once_) return pump_at_once();
  while (step_plan_ptr plan = core_.plan(now())) {
    outstanding_.push_back(std::move(plan));
    apply();
  }
  apply();
  const auto request = core_.take_request();
  if (!request) return;
  grant_ = grant_blocks(pool_, *request);
  most_tier_keys_.clear();
  const auto width = static_cast<std::size_t>(limits_.plan.block_tokens);
  for (std::size_t i = 0; i < grant_->matches.size(); ++i)
    most_tier_keys_.push_back(request->queries[i].tokens.size() / width -
                              grant_->matches[i].blocks.size());
}

/// Plans only when the allocator has answered, as the batchers of version 2 did.
void replayed_batcher::pump_at_once() {
  for (;;) {
    while (apply() || answer()) {
    }
    step_plan_ptr plan = core_.plan(now());
    if (!plan && !apply() && !answer()) return;
    if (plan) outstanding_.push_back(std::move(plan));
  }
}

/// Answers the batcher's request; returns whether there is one.
bool replayed_batcher::answer() {
  const auto request = core_.take_request();
  if (request) core_.granted(grant_blocks(pool_, *request), now());
  return request.has_value();
}

/// Applies the next kv_change to the pool; returns whether there was one.
bool replayed_batcher::apply() {
  const auto change = core_.take_change();
  if (change) apply_change(pool_, *change);
  return change.has_value();
}

} // namespace twill::actors
