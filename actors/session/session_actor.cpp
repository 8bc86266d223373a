#include "actors/session/session_actor.hpp"

#include <memory>
#include <utility>

namespace twill::actors {

namespace {

class session_state : public session_core::session_host {
public:
  const char* name = "session";
  std::unique_ptr<session_core> core;

  void init(session_actor::pointer self, engine_shared_ptr shared, session_args args) {
    self_ = self;
    shared_ = std::move(shared);
    id_ = args.id;
    core = std::make_unique<session_core>(std::move(args), shared_->stats, *this);
  }

  void start(const start_request& start) {
    admission admitted = shared_->admit();
    batcher_ = admitted.batcher;
    grammars_ = admitted.grammars;
    core->start(admitted.model, start.refusal ? start.refusal : admitted.refusal);
  }
  void forward(pause_request) {
    if (batcher_) tell(self_, batcher_, pause_request{id_});
  }
  void forward(resume_request) {
    if (batcher_) tell(self_, batcher_, resume_request{id_});
  }

private:
  void submit(const submit_prompt& prompt) override {
    tell(self_, batcher_, prompt, session_actor{self_});
  }
  void compile(const compile_grammar& order) override {
    tell(self_, grammars_, order, session_actor{self_});
  }
  void finish_choice(std::int32_t choice) override {
    tell(self_, batcher_, actors::finish_choice{id_, choice});
  }
  void release() override { tell(self_, batcher_, release_request{id_}); }
  void over() override {
    shared_->requests.erase(id_);
    self_->quit();
  }

  session_actor::pointer self_ = nullptr;
  engine_shared_ptr shared_;
  batcher_actor batcher_;
  grammar_compiler_actor grammars_;
  request_id id_ = 0;
};

session_actor::behavior_type session_behavior(session_actor::stateful_pointer<session_state> self,
                                              engine_shared_ptr shared,
                                              std::shared_ptr<session_args> args) {
  state_of(self).init(self, std::move(shared), std::move(*args));
  auto* core = state_of(self).core.get();
  return {
      [self](const start_request& start) { state_of(self).start(start); },
      [core](const grammar_ready& ready) { core->grammar(*ready.answer); },
      [core](prompt_queued) { core->queued(); },
      [core](const prompt_scored& scores) { core->scored(scores); },
      [core](const token_ready& drawn) { core->token(drawn, steady_clock::now()); },
      [core](const prompt_failed& failed) { core->failed(failed.why); },
      [core](cancel_request) { core->cancel(); },
      [self](pause_request order) { state_of(self).forward(order); },
      [self](resume_request order) { state_of(self).forward(order); },
      [core](deadline_passed) { core->expire(); },
      [core](const abort_request& abort) { core->end_with(abort.why); },
  };
}

} // namespace

session_actor spawn_session(caf::actor_system& system, engine_shared_ptr shared,
                            session_args args) {
  return system.spawn(session_behavior, std::move(shared),
                      std::make_shared<session_args>(std::move(args)));
}

} // namespace twill::actors
