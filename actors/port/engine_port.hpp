// engine_port: the whole interface through which net/ uses the engine. It has plain structs and
// callbacks only, no CAF and no sockets.
//
// Threads: any thread may call any function, and no function waits for the engine. Events of one
// request arrive in order and one at a time, on engine threads. A callback must be quick, must not
// throw, and must not call back into the port while it holds locks of its own. An event with `last`
// set is the final one: the callback of its request is never called again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/port/engine_stats.hpp"
#include "actors/port/event.hpp"
#include "actors/port/kv_events.hpp"
#include "actors/port/model_info.hpp"
#include "actors/port/request.hpp"
#include "actors/port/request_error.hpp"
#include "actors/port/scheduler_snapshot.hpp"
#include "config/base/ledger.hpp"
#include "config/base/result.hpp"

namespace twill::actors {

class engine_port {
public:
  virtual ~engine_port() = default;

  /// Starts a request. A refusal also arrives as an event, with `error` and `last` set.
  virtual request_id submit(request asked, event_callback on_event) = 0;
  /// Ends a request now. Its blocks are free within one step. Once this call returns, no further
  /// event begins; an event that is already being delivered may still be under way.
  virtual void cancel(request_id id) = 0;
  /// pause() stops scheduling a request whose client reads slowly, and resume() schedules the
  /// request again. Both are idempotent.
  virtual void pause(request_id id) = 0;
  virtual void resume(request_id id) = 0;

  virtual engine_state state() const = 0;
  /// why the engine is not ready; /ready shows this text
  virtual std::string state_detail() const = 0;
  virtual std::vector<model_info> models() const = 0;
  virtual engine_stats stats() const = 0;
  /// One entry for each tenant and model; a pair without any request so far is absent.
  virtual std::vector<tenant_stats> tenants() const { return {}; }
  /// One entry for each model and kind of actor.
  virtual std::vector<mailbox_depth> mailboxes() const { return {}; }
  /// Asks for a snapshot of each scheduler. `callback` is called once, on any thread, perhaps
  /// before this function returns. If the engine ends first, `callback` is destroyed without a
  /// call.
  virtual void describe(std::function<void(std::vector<scheduler_snapshot>)> callback) const {
    callback({});
  }
  /// Asks for a ledger of all resources that requests take and give back: how much of each is
  /// taken, and by which owner. `callback` is called as that of describe() is. Executors answer
  /// between two steps.
  virtual void account(std::function<void(ledger)> callback) const { callback({}); }
  /// The sources of KV events (actors/port/kv_events.hpp), one for each model with `kv.events`. The
  /// list does not change while the engine exists.
  virtual std::vector<kv_event_feed> kv_events() const { return {}; }
  /// The counters of each model. Their sums over all models are those of stats().
  virtual std::vector<model_stats> stats_of_models() const {
    const auto all = models();
    return {{all.empty() ? std::string() : all.front().id, stats()}};
  }
  /// Orders a model to load, sleep or unload. Returns at once with the state that the order led to;
  /// `models()` shows how the order proceeds.
  virtual result<model_info> order_model(const std::string&, model_order) {
    return failure{errc::invalid_argument,
                   "the only model is always loaded; give models as `[models.NAME]` to load them "
                   "and put them to sleep"};
  }

  /// Tokenizer calls run on the caller's thread. They fail with errc::unknown_model if no model
  /// named `model` is served.
  virtual result<std::vector<std::int32_t>>
  tokenize(const std::string& model, const text_prompt& text, bool parse_special) const = 0;
  virtual result<std::vector<std::int32_t>> tokenize_chat(const std::string& model,
                                                          const chat_prompt& chat) const = 0;
  virtual result<std::string> render_chat(const std::string& model,
                                          const chat_prompt& chat) const = 0;
  virtual result<std::string> detokenize(const std::string& model,
                                         const std::vector<std::int32_t>& ids) const = 0;
  virtual result<std::vector<token_piece>> pieces(const std::string& model,
                                                  const std::vector<std::int32_t>& ids) const = 0;
  virtual result<tokenizer_info> describe_tokenizer(const std::string& model) const = 0;

  /// Refuses new requests from now on; `drained` is called once no request is left.
  virtual void drain(std::function<void()> drained) = 0;
  /// Ends every request that is still under way, with errc::shutting_down.
  virtual void abort_all() = 0;
};

} // namespace twill::actors
