#include "actors/session/session_actor.hpp"

#include <memory>
#include <string>
#include <utility>

#include "actors/detail/counted_actor.hpp"
#include "config/base/log.hpp"

namespace twill::actors {

namespace {

constexpr std::int64_t short_bytes = 2048;

class session_state : public session_core::session_host {
public:
  const char* name = "session";
  std::unique_ptr<session_core> core;

  void init(session_actor::pointer self, engine_shared_ptr shared, session_args args) {
    self_ = self;
    shared_ = std::move(shared);
    id_ = args.id;
    client_ = args.request.client;
    prompt_bytes_ = args.prompt_bytes;
    control_ = args.control;
    core = std::make_unique<session_core>(std::move(args), shared_->stats, *this);
  }

  void start(const start_request& start) {
    admission admitted = shared_->admit();
    batcher_ = admitted.batcher;
    grammars_ = admitted.grammars;
    core->start(admitted.model, start.refusal ? start.refusal : admitted.refusal);
  }
  void forward(pause_request) {
    paused_ = true;
    if (batcher_) tell(self_, batcher_, pause_request{id_});
  }
  void forward(resume_request) {
    paused_ = false;
    if (batcher_) tell(self_, batcher_, resume_request{id_});
  }
  /// Whether the message that is being handled comes from the batcher that has the request. A
  /// batcher that was replaced may go on for a while if it was not the actor that failed.
  bool is_from_batcher() const {
    return batcher_ && self_->current_sender() == caf::actor_cast<caf::strong_actor_ptr>(batcher_);
  }
  void replace(const scheduler_replaced& replaced) {
    if (!batcher_) return; // the session has not started yet, and will start with the new actors
    if (grammars_ != replaced.grammars) core->compiler_lost(replaced.why);
    grammars_ = replaced.grammars;
    if (batcher_ == replaced.batcher || core->is_over()) return;
    batcher_ = replaced.batcher;
    core->batcher_lost(replaced.why);
  }

private:
  /// Short texts are encoded on this thread, since passing them to another thread would take as
  /// long.
  void encode(served_model_ptr model, prompt_variant prompt, bool to_context) override {
    const failure<errc> late{errc::queue_full,
                             "the text of the prompt waited for longer than "
                             "`scheduler.text_timeout` to be tokenized; retry later"};
    auto answer = std::make_shared<encoded_prompt>(encoded_prompt{std::move(prompt), "", late});
    if (prompt_bytes_ <= short_bytes || std::holds_alternative<token_prompt>(answer->prompt)) {
      encode_prompt_within(*model, to_context, nullptr, *answer);
      return core->encoded(std::move(*answer));
    }
    // The tasks own the answer, so that an unwanted answer is also destroyed on the pool's threads.
    const session_actor to{self_};
    fair_pool::task work;
    work.client = client_;
    work.bytes = prompt_bytes_;
    work.is_unwanted = [control = control_] { return control->silenced.load(); };
    work.run = [to, answer, model = std::move(model), to_context, unwanted = work.is_unwanted] {
      encode_prompt_within(*model, to_context, unwanted, *answer);
      tell_from_outside(to, answer);
    };
    work.expire = [to, answer] { tell_from_outside(to, answer); };
    if (shared_->text_pool->add(std::move(work))) return;
    core->encoded({{},
                   "",
                   failure{errc::queue_full,
                           "too much text waits to be tokenized (`scheduler.max_text`); retry "
                           "later, or send shorter prompts"}});
  }
  void submit(const submit_prompt& prompt) override {
    tell(self_, batcher_, prompt, session_actor{self_});
    if (paused_) forward(pause_request{id_}); // the request was paused before the batcher had it
  }
  void compile(const compile_grammar& order) override {
    tell(self_, grammars_, order, session_actor{self_});
    tell_later(self_, session_actor{self_}, shared_->options.structured.wait_timeout,
               grammar_overdue{});
  }
  void finish_choice(std::int32_t choice) override {
    tell(self_, batcher_, actors::finish_choice{id_, choice});
  }
  void release() override { tell(self_, batcher_, release_request{id_}); }
  void waited_too_long() override { tell(self_, batcher_, actors::waited_too_long{id_}); }
  std::int32_t retry_after_s() override {
    return shared_->requests.retry_after_s(client_, steady_clock::now());
  }
  steady_clock::time_point now() const override { return steady_clock::now(); }
  void on_over() override {
    shared_->requests.erase(id_, core->was_queued(), now());
    self_->quit();
  }

  session_actor::pointer self_ = nullptr;
  engine_shared_ptr shared_;
  batcher_actor batcher_;
  grammar_compiler_actor grammars_;
  request_id id_ = 0;
  bool paused_ = false;
  std::string client_;
  std::int64_t prompt_bytes_ = 0;
  std::shared_ptr<request_control> control_;
};

/// Ends the request of a session that ended because an exception left one of its handlers.
void bury(engine_shared& shared, request_id id, request_control& control,
          const event_callback& on_event) noexcept {
  try {
    if (!shared.requests.find(id)) return; // the request has already ended
    if (!control.silenced)
      log::error("the session of request " + std::to_string(id) + " ended by an exception");
    shared.stats.update([](engine_stats& s) { s.finished_error += 1; });
    if (const batcher_actor batcher = shared.batcher())
      tell_from_outside(batcher, release_request{id});
  } catch (...) { // no memory for this; the client's last event is more important
  }
  try {
    if (!control.silenced && !control.ended.exchange(true)) {
      event e;
      // short strings, which need no allocation
      e.error = request_error{errc::executor_failed, "out of memory", ""};
      e.last = true;
      on_event(std::move(e));
    }
  } catch (...) { // callbacks must not throw
  }
  shared.requests.erase(id, false, steady_clock::now());
}

session_actor::behavior_type
session_behavior(counted_pointer<session_actor, session_state, actor_kind::session> self,
                 engine_shared_ptr shared, std::shared_ptr<session_args> args) {
  self->attach_functor([shared, id = args->id, control = args->control, on_event = args->on_event](
                           const caf::error&) { bury(*shared, id, *control, on_event); });
  state_of(self).init(self, std::move(shared), std::move(*args));
  auto* core = state_of(self).core.get();
  return {
      [self](const start_request& start) { state_of(self).start(start); },
      [core](const grammar_ready& ready) { core->grammar(*ready.answer); },
      [core](grammar_overdue) { core->grammar_overdue(); },
      [core](const encoded_prompt_ptr& answer) { core->encoded(std::move(*answer)); },
      [self, core](const prompt_scored& scores) {
        if (state_of(self).is_from_batcher()) core->scored(scores);
      },
      [self, core](const prompt_pooled& pooled) {
        if (state_of(self).is_from_batcher()) core->pooled(pooled, steady_clock::now());
      },
      [self, core](prompt_queued) {
        if (state_of(self).is_from_batcher()) core->queued();
      },
      [self, core](const token_ready& drawn) {
        if (state_of(self).is_from_batcher()) core->token(drawn, steady_clock::now());
      },
      [self, core](const prompt_failed& failed) {
        if (state_of(self).is_from_batcher()) core->failed(failed.why);
      },
      [core](cancel_request) { core->cancel(); },
      [self](pause_request order) { state_of(self).forward(order); },
      [self](resume_request order) { state_of(self).forward(order); },
      [core](deadline_passed) { core->expire(); },
      [core](waited_too_long) { core->waited_too_long(); },
      [core](const abort_request& abort) { core->end_with(abort.why); },
      [self](const scheduler_replaced& replaced) { state_of(self).replace(replaced); },
  };
}

} // namespace

session_actor spawn_session(caf::actor_system& system, engine_shared_ptr shared,
                            session_args args) {
  return system.spawn(session_behavior, std::move(shared),
                      std::make_shared<session_args>(std::move(args)));
}

} // namespace twill::actors
