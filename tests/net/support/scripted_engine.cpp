#include "tests/net/support/scripted_engine.hpp"

#include <algorithm>

namespace twill::testing {

using actors::event;

scripted_engine::scripted_engine(writer write)
    : write_(std::move(write)), thread_([this] { play(); }) {}

scripted_engine::~scripted_engine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void scripted_engine::set_script(writer write) {
  const std::lock_guard lock(mutex_);
  write_ = std::move(write);
}

actors::request_id scripted_engine::submit(actors::request what, actors::event_callback on_event) {
  const std::lock_guard lock(mutex_);
  auto p = std::make_shared<playing>();
  p->plan = write_(what);
  if (state_ == actors::engine_state::draining)
    p->plan.refusal = actors::request_error{actors::errc::shutting_down, "draining", ""};
  p->on_event = std::move(on_event);
  p->n = what.sampling.n;
  p->logprobs = what.sampling.logprobs >= 0;
  p->top = std::max(0, what.sampling.logprobs);
  p->echo_ids = what.echo_prompt_ids;
  p->pooled = what.pooling != actors::pooling::none;
  p->max_tokens = what.sampling.max_tokens;
  if (const auto* ids = std::get_if<actors::token_prompt>(&what.prompt))
    p->prompt_tokens = static_cast<std::int32_t>(ids->size());
  else if (const auto* text = std::get_if<actors::text_prompt>(&what.prompt))
    p->prompt_tokens = static_cast<std::int32_t>(text->text.size());
  else
    p->prompt_tokens = 7;
  p->due = clock::now() + p->plan.start_delay;
  playing_.emplace(++last_id_, std::move(p));
  submitted_.push_back(std::move(what));
  changed_.notify_all();
  return last_id_;
}

void scripted_engine::cancel(actors::request_id id) {
  const std::lock_guard lock(mutex_);
  if (playing_.erase(id) > 0) ++cancels_;
  changed_.notify_all();
}

void scripted_engine::pause(actors::request_id id) {
  const std::lock_guard lock(mutex_);
  ++pauses_;
  if (const auto found = playing_.find(id); found != playing_.end()) found->second->paused = true;
  changed_.notify_all();
}

void scripted_engine::resume(actors::request_id id) {
  const std::lock_guard lock(mutex_);
  ++resumes_;
  if (const auto found = playing_.find(id); found != playing_.end()) found->second->paused = false;
  changed_.notify_all();
}

/// Adds the events of one step; false when the request is over.
bool scripted_engine::step(playing& p, std::vector<event>& out) {
  event ev;
  ev.use.prompt_tokens = p.prompt_tokens;
  if (!p.started) {
    p.started = true;
    ev.started = true;
    ev.continuity = "the scripted model";
    if (p.plan.refusal.has_value()) {
      ev.started = false;
      ev.error = p.plan.refusal;
      ev.last = true;
      out.push_back(std::move(ev));
      return false;
    }
    if (p.pooled) {
      ev.finish = actors::finish_reason::stop;
      ev.embedding = std::make_shared<const std::vector<float>>(p.plan.embedding);
      ev.last = true;
      out.push_back(std::move(ev));
      return false;
    }
    if (p.echo_ids) ev.prompt_ids.assign(static_cast<std::size_t>(p.prompt_tokens), 65);
    out.push_back(std::move(ev));
    return true;
  }
  const std::size_t total = p.plan.pieces.size() * p.plan.repeat;
  const bool cut = p.max_tokens > 0 && p.next >= static_cast<std::size_t>(p.max_tokens);
  if (p.next >= total && p.plan.failure.has_value()) {
    ev.error = p.plan.failure;
    ev.last = true;
    out.push_back(std::move(ev));
    return false;
  }
  const bool over = p.next >= total || cut;
  const bool reversed = p.plan.alternates && p.next % 2 == 0;
  for (std::int32_t i = 0; i < p.n; ++i) {
    event one = ev;
    one.choice = reversed ? p.n - 1 - i : i;
    if (over) {
      one.finish = cut ? actors::finish_reason::length : p.plan.finish;
      one.stop_string = p.plan.stop_string;
      one.stop_token = p.plan.stop_token;
      one.last = i + 1 == p.n;
    } else {
      const auto& piece = p.plan.pieces[p.next % p.plan.pieces.size()];
      actors::token_output token;
      token.chosen = {static_cast<std::int32_t>(100 + p.next), piece, -0.5f};
      for (std::int32_t rank = 0; rank < p.top; ++rank)
        token.top.push_back({static_cast<std::int32_t>(100 + p.next + static_cast<unsigned>(rank)),
                             piece, -0.5f - static_cast<float>(rank)});
      one.tokens.push_back(std::move(token));
      one.text = piece;
      ++p.made;
      ++tokens_made_;
    }
    one.use.completion_tokens = p.made;
    out.push_back(std::move(one));
  }
  ++p.next;
  return !over;
}

void scripted_engine::play() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    auto wake = clock::now() + 50ms;
    std::vector<std::pair<std::shared_ptr<playing>, std::vector<event>>> due;
    for (auto it = playing_.begin(); it != playing_.end();) {
      auto p = it->second;
      if (p->paused) {
        ++it;
        continue;
      }
      if (p->due > clock::now()) {
        wake = std::min(wake, p->due);
        ++it;
        continue;
      }
      std::vector<event> events;
      const bool goes_on = step(*p, events);
      p->due = clock::now() + p->plan.step;
      wake = std::min(wake, p->due);
      due.emplace_back(p, std::move(events));
      it = goes_on ? std::next(it) : playing_.erase(it);
    }
    if (!due.empty()) {
      lock.unlock();
      for (auto& [p, events] : due)
        for (auto& ev : events)
          p->on_event(std::move(ev));
      due.clear();
      lock.lock();
      changed_.notify_all();
    }
    if (playing_.empty() && !drained_.empty()) {
      auto tell = std::move(drained_);
      drained_.clear();
      lock.unlock();
      for (auto& one : tell)
        one();
      lock.lock();
    }
    if (wake > clock::now()) changed_.wait_until(lock, wake);
  }
}

void scripted_engine::drain(std::function<void()> drained) {
  const std::lock_guard lock(mutex_);
  state_ = actors::engine_state::draining;
  drained_.push_back(std::move(drained));
  changed_.notify_all();
}

void scripted_engine::abort_all() {
  const std::lock_guard lock(mutex_);
  for (auto& entry : playing_) {
    auto& p = *entry.second;
    p.paused = false;
    p.started = true;
    p.due = clock::now();
    p.max_tokens = -1;
    p.next = p.plan.pieces.size() * p.plan.repeat;
    p.plan.failure = actors::request_error{actors::errc::shutting_down, "aborted", ""};
  }
  changed_.notify_all();
}

std::vector<actors::model_info> scripted_engine::models() const {
  if (state_ == actors::engine_state::loading || state_ == actors::engine_state::failed) return {};
  actors::model_info model;
  model.id = "test-model";
  model.path = "/models/test.gguf";
  model.family = "llama";
  model.created_unix_s = 1700000000;
  model.max_model_len = 4096;
  model.vocab_size = 1000;
  model.embedding_size = 2;
  model.has_chat_template = true;
  return {model};
}

actors::engine_stats scripted_engine::stats() const {
  actors::engine_stats s;
  s.state = state_;
  s.requests_running = static_cast<std::int32_t>(running());
  s.kv_blocks_total = 100;
  s.kv_blocks_used = 25;
  s.kv_block_tokens = 16;
  s.generation_tokens = tokens_made_;
  s.finished_abort = static_cast<std::uint64_t>(cancels_.load());
  s.time_to_first_token_seconds = {{0.1, 1}, {2, 1, 1}, 3.5};
  count(s);
  return s;
}

actors::result<std::vector<std::int32_t>>
scripted_engine::tokenize(const std::string&, const actors::text_prompt& text, bool) const {
  std::vector<std::int32_t> ids;
  if (text.add_special) ids.push_back(1);
  for (const char c : text.text)
    ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

actors::result<std::vector<std::int32_t>>
scripted_engine::tokenize_chat(const std::string&, const actors::chat_prompt& chat) const {
  return std::vector<std::int32_t>(chat.messages.as_list()->size(), 42);
}

actors::result<std::string> scripted_engine::render_chat(const std::string&,
                                                         const actors::chat_prompt&) const {
  return std::string("rendered");
}

actors::result<std::string>
scripted_engine::detokenize(const std::string&, const std::vector<std::int32_t>& ids) const {
  std::string text;
  for (const auto id : ids)
    text += static_cast<char>(id);
  return text;
}

actors::result<std::vector<actors::token_piece>>
scripted_engine::pieces(const std::string&, const std::vector<std::int32_t>& ids) const {
  std::vector<actors::token_piece> out;
  for (const auto id : ids)
    out.push_back({id, std::string(1, static_cast<char>(id))});
  return out;
}

actors::result<actors::tokenizer_info>
scripted_engine::describe_tokenizer(const std::string&) const {
  return actors::tokenizer_info{.kind = "bytes",
                                .adds_bos = true,
                                .bos_id = '<',
                                .eos_id = -1,
                                .special = {{'<', "<"}},
                                .chat_template = "{{ messages }}"};
}

std::size_t scripted_engine::running() const {
  const std::lock_guard lock(mutex_);
  return playing_.size();
}

std::vector<actors::request> scripted_engine::submitted() const {
  const std::lock_guard lock(mutex_);
  return submitted_;
}

bool scripted_engine::wait_cancelled(int n, std::chrono::milliseconds within) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, within, [&] { return cancels_ >= n; });
}

bool scripted_engine::wait_running(std::size_t n, std::chrono::milliseconds within) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, within, [&] { return playing_.size() == n; });
}

bool scripted_engine::wait_paused(int n, std::chrono::milliseconds within) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, within, [&] { return pauses_ >= n; });
}

bool scripted_engine::wait_stalled() const {
  for (int i = 0; i < 100; ++i) {
    const auto before = tokens_made();
    std::this_thread::sleep_for(100ms);
    if (tokens_made() == before) return true;
  }
  return false;
}

bool scripted_engine::wait_submitted(std::size_t n, std::chrono::milliseconds within) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, within, [&] { return submitted_.size() >= n; });
}

} // namespace twill::testing
