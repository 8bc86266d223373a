#include "actors/pool/model_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "actors/detail/stats_board.hpp"
#include "actors/detail/text_port.hpp"
#include "actors/pool/held_request.hpp"
#include "actors/pool/pool_state.hpp"
#include "actors/pool/sum_stats.hpp"
#include "actors/session/prompt.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"

namespace twill::actors {

namespace {

using steady_clock = std::chrono::steady_clock;

std::vector<pool_state::model_rules> rules_of(const config::options& options) {
  std::vector<pool_state::model_rules> rules;
  for (const auto& model : options.models)
    rules.push_back({model.pin, model.keep_alive});
  return rules;
}

request_error shutting_down() {
  return {errc::shutting_down, "the server is shutting down; retry later", ""};
}

class model_pool final : public engine, public text_port {
public:
  model_pool(const config::options& options, std::int64_t budget_bytes, pool_parts parts)
      : parts_(std::move(parts)), options_(options), models_(options.models.size()),
        state_(rules_of(options), {budget_bytes, options.scheduler.restart_delay,
                                   options.scheduler.restart_delay_max}) {
    for (std::size_t m = 0; m < models_.size(); ++m) {
      auto& info = models_[m].info;
      info.id = options_.models[m].id();
      info.other_names = options_.models[m].aliases;
      info.path = options_.models[m].model.path;
      info.pinned = options_.models[m].pin;
    }
    state_.begin(steady_clock::now());
    clerk_ = std::thread([this] { run_clerk(); });
    loader_ = std::thread([this] { run_loader(); });
  }

  ~model_pool() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (auto& [id, held] : requests_)
        held->silenced = true;
      for (auto& [id, held] : refusing_)
        held->silenced = true;
    }
    changed_.notify_all();
    jobs_changed_.notify_all();
    clerk_.join();
    loader_.join();
    for (auto& model : models_)
      model.running.reset();
  }

  engine_port& port() override { return *this; }
  void reload(const config::options& options) override {
    const std::lock_guard lock(mutex_);
    options_.limits = options.limits;
    options_.sampling = options.sampling;
    options_.tenants = options.tenants;
    options_.scheduler.queue_timeout = options.scheduler.queue_timeout;
    for (auto& model : models_)
      if (model.running) model.running->reload(options_);
  }

  request_id submit(request asked, event_callback on_event) override {
    const request_id id = next_id_.fetch_add(1, std::memory_order_relaxed);
    try {
      auto held = std::make_shared<held_request>();
      held->id = id;
      held->asked = std::move(asked);
      held->on_event = on_event;
      engine_port* to = nullptr;
      {
        const std::lock_guard lock(mutex_);
        to = take_in(held);
      }
      if (to != nullptr)
        send(held, *to);
      else
        changed_.notify_one();
    } catch (const std::bad_alloc&) {
      event refused;
      refused.error = request_error{errc::executor_failed, "out of memory", ""};
      refused.last = true;
      on_event(std::move(refused));
    }
    return id;
  }

  void cancel(request_id id) override {
    const std::lock_guard lock(mutex_);
    obey();
    if (const auto refused = refusing_.find(id); refused != refusing_.end())
      refused->second->silenced = true;
    const auto found = requests_.find(id);
    if (found == requests_.end()) return;
    const held_request_ptr held = found->second;
    held->silenced = true;
    if (held->where == held_request::place::sending) return; // send() sees to it
    if (held->where == held_request::place::sent) models_[held->model].port().cancel(held->inner);
    forget(*held);
    changed_.notify_one();
  }

  void pause(request_id id) override { set_paused(id, true); }
  void resume(request_id id) override { set_paused(id, false); }

  engine_state state() const override {
    const std::lock_guard lock(mutex_);
    if (draining_) return engine_state::draining;
    if (!state_.begun()) return engine_state::loading;
    bool all_failed = true;
    for (std::size_t m = 0; m < models_.size(); ++m) {
      all_failed = all_failed && state_.now(m) == pool_state::phase::failed;
      if (models_[m].running && models_[m].running->port().state() == engine_state::stalled)
        return engine_state::stalled;
    }
    return all_failed ? engine_state::failed : engine_state::ready;
  }

  std::string state_detail() const override {
    const std::lock_guard lock(mutex_);
    if (draining_) return "the server is shutting down";
    if (!state_.begun()) return "the models are being opened";
    std::string detail;
    for (std::size_t m = 0; m < models_.size(); ++m) {
      std::string why = state_.detail(m);
      if (models_[m].running) why = models_[m].running->port().state_detail();
      if (!why.empty()) detail += (detail.empty() ? "" : "; ") + models_[m].info.id + ": " + why;
    }
    return detail;
  }

  std::vector<model_info> models() const override {
    const std::lock_guard lock(mutex_);
    std::vector<model_info> all;
    if (!state_.begun()) return all;
    for (std::size_t m = 0; m < models_.size(); ++m)
      all.push_back(describe(m));
    return all;
  }

  engine_stats stats() const override {
    engine_stats sum;
    for (const auto& one : stats_of_models())
      add_stats(sum, one.stats);
    sum.state = state();
    return sum;
  }

  std::vector<model_stats> stats_of_models() const override {
    const std::lock_guard lock(mutex_);
    std::vector<model_stats> all;
    for (std::size_t m = 0; m < models_.size(); ++m) {
      all.push_back({models_[m].info.id, models_[m].past});
      if (models_[m].running) add_stats(all.back().stats, models_[m].running->port().stats());
      all.back().stats.requests_waiting += static_cast<std::int32_t>(state_.waiting(m));
    }
    return all;
  }

  std::vector<tenant_stats> tenants() const override {
    const std::lock_guard lock(mutex_);
    std::vector<tenant_stats> all;
    for (const auto& model : models_) {
      add_tenants(all, model.past_tenants);
      if (model.running) add_tenants(all, model.running->port().tenants());
    }
    return all;
  }

  result<model_info> order_model(const std::string& name, model_order what) override {
    const std::lock_guard lock(mutex_);
    auto found = name.empty() ? std::nullopt : find(name);
    for (std::size_t m = 0; m < models_.size() && !found; ++m)
      if (options_.models[m].key == name) found = m;
    if (!found) return unknown(name);
    if (draining_) return failure{errc::shutting_down, shutting_down().message};
    const auto now = steady_clock::now();
    switch (what) {
    case model_order::load:
      state_.ask_load(*found, now);
      break;
    case model_order::sleep:
      state_.ask_sleep(*found, now);
      break;
    case model_order::unload:
      state_.ask_unload(*found, now);
      break;
    }
    changed_.notify_one();
    return describe(*found);
  }

  void drain(std::function<void()> drained) override {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    drained_ = std::move(drained);
    changed_.notify_one();
  }

  void abort_all() override {
    const std::lock_guard lock(mutex_);
    obey();
    std::vector<held_request_ptr> waiting;
    for (auto& [id, held] : requests_)
      if (held->where == held_request::place::waiting) waiting.push_back(held);
    for (const auto& held : waiting) {
      obey();
      if (held->where != held_request::place::waiting) continue;
      forget(*held);
      refuse(held, shutting_down());
    }
    for (auto& model : models_)
      if (model.running) model.port().abort_all();
    changed_.notify_one();
  }

private:
  struct one {
    model_info info; ///< what is known since the files were first opened, also of their sampling
    std::optional<opened_model> opened;
    std::unique_ptr<engine> running; ///< while it is awake, and until it has left
    // Of its engines that are gone:
    engine_stats past = stats_board().read();
    std::vector<tenant_stats> past_tenants;

    engine_port& port() { return running->port(); }
  };
  using refusal = std::pair<held_request_ptr, request_error>;

  std::optional<std::size_t> find(const std::string& name) const {
    if (name.empty()) return 0;
    for (std::size_t m = 0; m < models_.size(); ++m)
      if (models_[m].info.answers_to(name)) return m;
    return std::nullopt;
  }
  failure<errc> unknown(const std::string& name) const {
    return {errc::unknown_model, "`model` must be a served model such as \"" +
                                     models_.front().info.id + "\", got \"" + name + "\""};
  }

  result<served_model_ptr> text_model(const std::string& id) const override {
    const std::lock_guard lock(mutex_);
    const auto found = find(id);
    if (!found) return unknown(id);
    if (const auto& opened = models_[*found].opened) return opened->text;
    std::string why = state_.detail(*found);
    if (why.empty()) why = "its files are not open; load it";
    return failure{errc::not_ready,
                   "the model " + models_[*found].info.id + " cannot be used: " + why};
  }

  model_info describe(std::size_t m) const {
    model_info info = models_[m].info;
    config::put_configured(options_.sampling, info.default_sampling); // a reload changes them
    if (models_[m].running)
      for (const auto& awake : models_[m].running->port().models())
        info.max_model_len = awake.max_model_len;
    using phase = pool_state::phase;
    switch (state_.now(m)) {
    case phase::closed:
      info.state = model_state::unloaded;
      break;
    case phase::asleep:
      info.state = model_state::asleep;
      break;
    case phase::opening:
    case phase::loading:
      info.state = model_state::loading;
      break;
    case phase::awake:
      info.state = model_state::ready;
      break;
    case phase::draining:
    case phase::leaving:
      info.state = model_state::draining;
      break;
    case phase::failed:
      info.state = model_state::failed;
      break;
    }
    info.detail = state_.detail(m);
    if (models_[m].running && models_[m].running->port().state() == engine_state::failed) {
      info.state =
          model_state::failed; // until the engine, which tries again by itself, has it back
      info.detail = models_[m].running->port().state_detail();
    }
    info.need_bytes = state_.need(m);
    info.granted_bytes = state_.grant(m);
    info.requests_under_way = static_cast<std::int32_t>(state_.under_way(m));
    info.requests_waiting = static_cast<std::int32_t>(state_.waiting(m));
    return info;
  }

  // Requests.

  /// Holds a new request, or refuses it. Returns the engine that it is to be sent to now, or null.
  engine_port* take_in(const held_request_ptr& held) {
    const auto refuse = [&](request_error why) -> engine_port* {
      this->refuse(held, std::move(why));
      return nullptr;
    };
    if (draining_) return refuse(shutting_down());
    const auto found = find(held->asked.model);
    if (!found) return refuse({errc::unknown_model, unknown(held->asked.model).detail, "model"});
    const auto now = steady_clock::now();
    held->model = *found;
    held->asked.model = models_[*found].info.id;
    held->bytes = prompt_bytes(held->asked.prompt);
    if (state_.now(*found) != pool_state::phase::awake)
      if (auto full = queue_full(*held)) return refuse(std::move(*full));
    switch (state_.asked(*found, now)) {
    case pool_state::verdict::refuse:
      return refuse(not_ready(*found));
    case pool_state::verdict::send:
      held->where = held_request::place::sending;
      requests_.emplace(held->id, held);
      return &models_[*found].port();
    case pool_state::verdict::wait:
      break;
    }
    auto timeout = held->asked.timeout;
    if (const auto most = options_.limits.request_timeout; most.count() > 0)
      timeout = timeout.count() > 0 ? std::min(timeout, most) : most;
    if (timeout.count() > 0) held->deadline = now + timeout;
    if (const auto patience = options_.scheduler.queue_timeout; patience.count() > 0)
      held->queue_deadline = now + patience;
    held->asked.arrived = now;
    waiting_bytes_ += held->bytes;
    ++waiting_of_[held->asked.client];
    requests_.emplace(held->id, held);
    return nullptr;
  }

  /// The clerk tells the client, so that no callback runs inside a call of the port.
  void refuse(const held_request_ptr& held, request_error why) {
    refusing_.emplace(held->id, held);
    refused_.emplace_back(held, std::move(why));
  }

  request_error not_ready(std::size_t m) const {
    return {errc::not_ready,
            "the model " + models_[m].info.id + " cannot be served: " + state_.detail(m), ""};
  }

  /// What waits for a model is bounded as a queue is. A named client may hold seven times the
  /// places that are free, so that others still get in.
  std::optional<request_error> queue_full(const held_request& held) const {
    const auto refuse = [](const char* why) {
      return request_error{errc::queue_full, std::string(why) + "; retry later", "", 1};
    };
    const auto most = static_cast<std::size_t>(options_.scheduler.max_queued);
    const std::size_t waiting = state_.waiting(held.model);
    if (waiting >= most)
      return refuse("the queue of this model, which is being loaded, is full "
                    "(`scheduler.max_queued`)");
    if (waiting_bytes_ + held.bytes > options_.scheduler.max_prompts_bytes)
      return refuse("the prompts that wait for their models are too large together "
                    "(`scheduler.max_prompts`)");
    const auto of_client = waiting_of_.find(held.asked.client);
    const std::size_t own = of_client == waiting_of_.end() ? 0 : of_client->second;
    if (!held.asked.client.empty() && own > 7 * (most - waiting))
      return refuse("this client has most of the places in the queue (`scheduler.max_queued`)");
    const auto* tenant = config::find_tenant(options_.tenants, held.asked.tenant);
    if (tenant != nullptr && tenant->max_queued > 0 &&
        own >= static_cast<std::size_t>(tenant->max_queued))
      return refuse("too many requests of this tenant wait (`tenants.max_queued`)");
    return std::nullopt;
  }

  /// Hands a request to its engine. It counts as under way, so the engine stays meanwhile.
  void send(const held_request_ptr& held, engine_port& to) {
    const request_id inner =
        to.submit(std::move(held->asked), [this, held](event e) { pass_on(held, std::move(e)); });
    const std::lock_guard lock(mutex_);
    held->inner = inner;
    held->where = held_request::place::sent;
    if (held->silenced)
      to.cancel(inner);
    else if (held->paused)
      to.pause(inner);
    if (held->silenced || held->over) forget(*held);
    changed_.notify_one();
  }

  void pass_on(const held_request_ptr& held, event e) {
    if (held->silenced) return;
    const bool last = e.last;
    held->on_event(std::move(e));
    if (!last) return;
    const std::lock_guard lock(mutex_);
    held->over = true;
    if (held->where == held_request::place::sending) return; // send() sees to it
    forget(*held);
    changed_.notify_one();
  }

  /// A request is over.
  void forget(const held_request& held) {
    const auto found = requests_.find(held.id);
    if (found == requests_.end()) return;
    const held_request_ptr kept = found->second;
    requests_.erase(found);
    const auto now = steady_clock::now();
    if (kept->where != held_request::place::waiting) return state_.ended(kept->model, now);
    stop_waiting(*kept);
    state_.gave_up(kept->model, now);
  }

  /// Counts the places and bytes of a request that waits no more.
  void stop_waiting(const held_request& held) {
    waiting_bytes_ -= held.bytes;
    const auto found = waiting_of_.find(held.asked.client);
    if (found != waiting_of_.end() && --found->second == 0) waiting_of_.erase(found);
  }

  void set_paused(request_id id, bool paused) {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return;
    auto& held = *found->second;
    held.paused = paused;
    if (held.where != held_request::place::sent) return;
    auto& port = models_[held.model].port();
    paused ? port.pause(held.inner) : port.resume(held.inner);
  }

  // The clerk.

  /// What is to be done without the mutex.
  struct work {
    std::vector<held_request_ptr> sends;
    std::vector<refusal> refusals;
    std::function<void()> drained;
    bool empty() const { return sends.empty() && refusals.empty() && !drained; }
  };

  void run_clerk() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      const auto wake = prepare(steady_clock::now());
      if (work todo = take_work(); !todo.empty()) {
        lock.unlock();
        do_work(todo);
        lock.lock();
        continue;
      }
      if (wake)
        changed_.wait_until(lock, *wake);
      else
        changed_.wait(lock);
    }
  }

  /// Looks at the clock, and turns orders into work and jobs. Returns when to look again.
  std::optional<steady_clock::time_point> prepare(steady_clock::time_point now) {
    std::optional<steady_clock::time_point> wake;
    const auto by = [&](steady_clock::time_point at) { wake = wake ? std::min(*wake, at) : at; };
    if (const auto at = state_.wake_at(); at && *at <= now) state_.woken(now);
    obey();
    std::vector<refusal> late;
    for (const auto& [id, held] : requests_) {
      if (held->where != held_request::place::waiting) continue;
      const std::string model = models_[held->model].info.id;
      if (held->deadline && *held->deadline <= now)
        late.emplace_back(held, request_error{errc::timed_out,
                                              "the deadline of the request passed while it waited "
                                              "for the model " +
                                                  model + " to be loaded; retry later",
                                              ""});
      else if (held->queue_deadline && *held->queue_deadline <= now)
        late.emplace_back(held, request_error{errc::queue_timed_out,
                                              "the request waited for longer than "
                                              "`scheduler.queue_timeout` for the model " +
                                                  model + " to be loaded; retry later",
                                              "", 1});
      else {
        if (held->deadline) by(*held->deadline);
        if (held->queue_deadline) by(*held->queue_deadline);
      }
    }
    for (auto& [held, why] : late) {
      // The end of one may have ordered to send another.
      obey();
      if (held->where != held_request::place::waiting) continue;
      forget(*held);
      refuse(held, std::move(why));
    }
    obey();
    if (const auto at = state_.wake_at()) by(*at);
    return wake;
  }

  work take_work() {
    work todo;
    todo.sends.swap(sends_);
    todo.refusals.swap(refused_);
    if (draining_ && requests_.empty() && refusing_.empty())
      todo.drained = std::exchange(drained_, nullptr);
    return todo;
  }

  void do_work(work& todo) {
    for (auto& [held, why] : todo.refusals) {
      event refused;
      refused.error = std::move(why);
      refused.last = true;
      if (!held->silenced.exchange(true)) held->on_event(std::move(refused));
      const std::lock_guard lock(mutex_);
      refusing_.erase(held->id);
    }
    // The engine stays: the requests count as under way.
    for (const auto& held : todo.sends)
      send(held, models_[held->model].port());
    if (todo.drained) todo.drained();
  }

  /// Carries out what the state has ordered. It counts requests as under way once it has ordered to
  /// send them, so nobody may end a request that waits before its orders were obeyed.
  void obey() {
    const auto orders = state_.take_orders();
    for (const auto& order : orders)
      std::visit([this](const auto& one) { carry_out(one); }, order);
    if (!orders.empty()) changed_.notify_one();
  }

  void carry_out(const pool_state::open& order) {
    push_job([this, m = order.model] { open(m); });
  }
  void carry_out(const pool_state::load& order) {
    push_job([this, m = order.model, grant = order.grant] { load(m, grant); });
  }
  void carry_out(const pool_state::leave& order) {
    push_job([this, m = order.model] { leave(m); });
  }
  void carry_out(const pool_state::close& order) {
    // Closing a large file takes a while, so it happens on the loader's thread.
    push_job([opened = std::make_shared<std::optional<opened_model>>(
                  std::exchange(models_[order.model].opened, std::nullopt))] { opened->reset(); });
  }
  void carry_out(const pool_state::send_waiting& order) {
    for (auto& [id, held] : requests_) {
      if (held->model != order.model || held->where != held_request::place::waiting) continue;
      stop_waiting(*held);
      held->where = held_request::place::sending;
      sends_.push_back(held);
    }
  }
  void carry_out(const pool_state::refuse_waiting& order) {
    std::erase_if(requests_, [&](const auto& entry) {
      const auto& held = entry.second;
      if (held->model != order.model || held->where != held_request::place::waiting) return false;
      stop_waiting(*held);
      refuse(held, not_ready(order.model));
      return true;
    });
    log::error("the model " + models_[order.model].info.id + " cannot be served: " + order.why);
  }

  // The loader.

  void push_job(std::function<void()> job) {
    jobs_.push_back(std::move(job));
    jobs_changed_.notify_one();
  }

  void run_loader() {
    std::unique_lock lock(mutex_);
    for (;;) {
      jobs_changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      const auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  void open(std::size_t m) {
    auto opened = guarded([&] { return parts_.open(m); });
    const std::lock_guard lock(mutex_);
    const auto now = steady_clock::now();
    if (opened.ok()) {
      auto& model = models_[m];
      model.opened = std::move(opened).value();
      learn(model);
      state_.opened(m, model.opened->need_bytes, now);
    } else {
      state_.open_failed(m, opened.detail(), now);
    }
    changed_.notify_one();
  }

  /// What clients may know of a model from its files.
  void learn(one& model) const {
    const served_model& text = *model.opened->text;
    model_info& info = model.info;
    info.family = text.files->spec.family;
    info.quantization = text.files->quantization;
    info.created_unix_s = text.created_unix_s;
    info.max_model_len = text.max_context_tokens;
    info.vocab_size = text.files->text->vocab_size();
    info.has_chat_template = text.files->chat != nullptr;
    info.default_sampling = text.files->default_sampling;
  }

  void load(std::size_t m, std::int64_t grant) {
    std::optional<opened_model> opened;
    std::string id;
    {
      const std::lock_guard lock(mutex_);
      opened = models_[m].opened;
      id = models_[m].info.id;
    }
    log::info("loading model " + id + " into at most " + format_bytes(grant));
    auto started = guarded([&]() -> result<std::unique_ptr<engine>> {
      if (!opened) return failure{errc::not_ready, "its files are not open"};
      return parts_.start(m, *opened, grant);
    });
    std::unique_ptr<engine> made;
    std::string why;
    if (started.ok()) {
      made = std::move(started).value();
      while (made->port().state() == engine_state::loading) {
        if (is_stopping()) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      if (made->port().state() == engine_state::failed) {
        why = made->port().state_detail();
        made.reset();
      }
    } else {
      why = started.detail();
    }
    const std::lock_guard lock(mutex_);
    const auto now = steady_clock::now();
    if (made) {
      made->reload(options_); // as a reload may have come since the start
      models_[m].running = std::move(made);
      state_.loaded(m, now);
    } else {
      log::error("the model " + id + " cannot be loaded: " + why);
      state_.load_failed(m, why, now);
    }
    changed_.notify_one();
  }

  void leave(std::size_t m) {
    engine_port* port = nullptr; // only this thread ends engines
    {
      const std::lock_guard lock(mutex_);
      port = &models_[m].port();
    }
    // Its clients have heard the last event, but sessions may still count what was used.
    const auto ended = std::make_shared<std::promise<void>>();
    port->drain([ended] { ended->set_value(); });
    ended->get_future().wait_for(std::chrono::seconds(2));
    std::unique_ptr<engine> ending;
    {
      const std::lock_guard lock(mutex_);
      ending = std::move(models_[m].running);
      auto counted = ending->port().stats();
      forget_gauges(counted);
      add_stats(models_[m].past, counted);
      add_tenants(models_[m].past_tenants, ending->port().tenants());
      log::info("model " + models_[m].info.id + " is put to sleep");
    }
    ending.reset();
    const std::lock_guard lock(mutex_);
    state_.left(m, steady_clock::now());
    changed_.notify_one();
  }

  bool is_stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  template <class F>
  static auto guarded(F&& work) -> decltype(work()) {
    try {
      return work();
    } catch (const std::exception& error) {
      return failure{errc::executor_failed, std::string(error.what())};
    }
  }

  const pool_parts parts_;
  mutable std::mutex mutex_;
  config::options options_;              ///< a reload changes it
  std::condition_variable changed_;      ///< for the clerk
  std::condition_variable jobs_changed_; ///< for the loader
  std::vector<one> models_;
  pool_state state_;
  std::map<request_id, held_request_ptr> requests_;
  std::map<std::string, std::size_t> waiting_of_; ///< by client
  std::int64_t waiting_bytes_ = 0;
  std::map<request_id, held_request_ptr> refusing_; ///< whose clients do not know yet
  std::vector<held_request_ptr> sends_;             ///< for the clerk, as are:
  std::vector<refusal> refused_;
  std::function<void()> drained_;
  std::deque<std::function<void()>> jobs_;
  std::atomic<request_id> next_id_{1};
  bool draining_ = false, stopping_ = false;
  std::thread clerk_, loader_;
};

} // namespace

std::unique_ptr<engine> start_pool(const config::options& options, std::int64_t budget_bytes,
                                   pool_parts parts) {
  return std::make_unique<model_pool>(options, budget_bytes, std::move(parts));
}

} // namespace twill::actors
