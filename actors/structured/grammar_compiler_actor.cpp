#include "actors/structured/grammar_compiler_actor.hpp"

#include <exception>
#include <string>
#include <utility>

#include "actors/detail/counted_actor.hpp"
#include "actors/structured/compile_queue.hpp"

namespace twill::actors {

namespace {

struct order {
  compile_grammar message;
  session_actor session;
};

class grammar_compiler_state {
public:
  const char* name = "grammar-compiler";

  void init(grammar_compiler_actor::pointer self, std::shared_ptr<grammar_service> service) {
    self_ = self;
    service_ = std::move(service);
  }

  /// While orders wait, one compile_next message is under way, so that orders that arrived during a
  /// compilation are queued before the next one is chosen.
  void add(const compile_grammar& what, const session_actor& session) {
    if (queue_.empty() && !busy_) go_on();
    queue_.push(what.client, {what, session});
  }

  void compile() {
    busy_ = false;
    while (auto next = queue_.pop()) {
      if (*next->message.abandoned) continue;
      tell(self_, next->session, grammar_ready{answer(next->message)});
      break;
    }
    if (!queue_.empty()) go_on();
  }

private:
  void go_on() {
    busy_ = true;
    tell(self_, grammar_compiler_actor{self_}, compile_next{});
  }

  grammar_answer_ptr answer(const compile_grammar& what) {
    const auto failed = [](const std::string& why) {
      return std::make_shared<const grammar_answer>(grammar_answer{
          failure{models::grammar::errc::helper_failed, "compiling the grammar failed: " + why},
          nullptr});
    };
    try {
      return service_->compile(what);
    } catch (const std::exception& error) {
      return failed(error.what());
    } catch (...) {
      return failed("an unknown exception");
    }
  }

  grammar_compiler_actor::pointer self_ = nullptr;
  std::shared_ptr<grammar_service> service_;
  compile_queue<order> queue_;
  bool busy_ = false;
};

grammar_compiler_actor::behavior_type grammar_compiler_behavior(
    counted_pointer<grammar_compiler_actor, grammar_compiler_state, actor_kind::grammar_compiler>
        self,
    std::shared_ptr<grammar_service> service) {
  state_of(self).init(self, std::move(service));
  return {
      [self](const compile_grammar& what, const session_actor& session) {
        state_of(self).add(what, session);
      },
      [self](compile_next) { state_of(self).compile(); },
  };
}

} // namespace

grammar_compiler_actor spawn_grammar_compiler(caf::actor_system& system,
                                              std::shared_ptr<grammar_service> service) {
  return system.spawn<caf::detached>(grammar_compiler_behavior, std::move(service));
}

} // namespace twill::actors
