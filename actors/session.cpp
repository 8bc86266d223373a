#include "actors/session.hpp"

#include <memory>
#include <utility>

namespace twill::actors {

namespace {

class session_state : public session_core::outlet {
public:
  const char* name = "session";
  std::unique_ptr<session_core> core;

  void init(session_actor::pointer self, engine_shared_ptr shared, session_args args) {
    self_ = self;
    shared_ = std::move(shared);
    id_ = args.id;
    core = std::make_unique<session_core>(std::move(args), shared_->stats, *this);
  }

  void start(const start_request& what) {
    door at = shared_->answer();
    batcher_ = at.batcher;
    core->start(at.model, what.refusal ? what.refusal : at.refusal);
  }
  void forward(pause_request) {
    if (batcher_) self_->send(batcher_, pause_request{id_});
  }
  void forward(resume_request) {
    if (batcher_) self_->send(batcher_, resume_request{id_});
  }

private:
  void submit(const submit_prompt& what) override {
    self_->send(batcher_, what, session_actor{self_});
  }
  void finish_choice(std::int32_t choice) override {
    self_->send(batcher_, actors::finish_choice{id_, choice});
  }
  void release() override { self_->send(batcher_, release_request{id_}); }
  void over() override {
    shared_->requests.erase(id_);
    self_->quit();
  }

  session_actor::pointer self_ = nullptr;
  engine_shared_ptr shared_;
  batcher_actor batcher_;
  request_id id_ = 0;
};

session_actor::behavior_type session_behavior(session_actor::stateful_pointer<session_state> self,
                                              engine_shared_ptr shared,
                                              std::shared_ptr<session_args> args) {
  self->state.init(self, std::move(shared), std::move(*args));
  auto* core = self->state.core.get();
  return {
      [self](const start_request& what) { self->state.start(what); },
      [core](prompt_queued) { core->queued(); },
      [core](const token_ready& what) { core->token(what, steady_clock::now()); },
      [core](const prompt_failed& what) { core->failed(what.why); },
      [core](cancel_request) { core->cancel(); },
      [self](pause_request what) { self->state.forward(what); },
      [self](resume_request what) { self->state.forward(what); },
      [core](deadline_passed) { core->expire(); },
      [core](const abort_request& what) { core->end_with(what.why); },
  };
}

} // namespace

session_actor spawn_session(caf::actor_system& system, engine_shared_ptr shared,
                            session_args args) {
  return system.spawn(session_behavior, std::move(shared),
                      std::make_shared<session_args>(std::move(args)));
}

} // namespace twill::actors
