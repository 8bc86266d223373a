#include "tests/actors/meaning/world.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeinfo>
#include <utility>

#include "actors/detail/message_probe.hpp"
#include "actors/engine/caf_engine.hpp"
#include "actors/executor/decoder_runner.hpp"
#include "actors/messages.hpp"
#include "actors/pool/model_pool.hpp"
#include "actors/pool/pool_parts.hpp"
#include "actors/pool/step_turns.hpp"
#include "actors/port/request_summary.hpp"
#include "models/compute.hpp"
#include "models/decoder/decoder.hpp"
#include "tests/actors/at_rest.hpp"
#include "tests/actors/meaning/troubled_runner.hpp"
#include "tests/actors/message_target.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/support/temp_folder.hpp"

namespace twill::test {
namespace {

using actors::engine_state;
using actors::errc;
using namespace std::chrono_literals;
constexpr auto patience = 120s;

void wait_until(const std::function<bool()>& done, const std::string& what) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    demand(std::chrono::steady_clock::now() < end, "no end of waiting until " + what);
    std::this_thread::sleep_for(100us);
  }
}

/// Failures that the world causes, and a grammar's mask that takes too long on a busy machine.
bool may_be_tried_again(const actors::request_error& error) {
  return error.code == errc::executor_failed || error.code == errc::not_ready ||
         error.code == errc::grammar_refused;
}

std::int64_t block_bytes(const small_model& model, const config::options& options) {
  const auto& files = *model.files;
  const auto choice = models::resolve_compute(options.model.compute, options.kv.type, files.spec,
                                              *files.weights, shared_device().info());
  models::decoder_options sizes;
  sizes.kv_type = choice.value().kv_type;
  sizes.block_tokens = options.kv.block_tokens;
  return models::decoder::block_bytes(files.spec, sizes);
}

config::options basic_options(const small_model& model) {
  config::options o = model.options;
  o.device.kind = "host";
  o.scheduler.restart_delay = o.scheduler.restart_delay_max = 1ms;
  return o;
}

std::unique_ptr<actors::engine> start(const small_model& model, const config::options& options,
                                      actors::run_order order, std::shared_ptr<troubles> plan,
                                      std::shared_ptr<actors::step_turns> turns = nullptr) {
  auto kept = std::make_shared<std::shared_ptr<const models::model>>(model.files);
  auto make = actors::make_decoder_runners(options, {}, {}, std::move(kept), order);
  actors::runner_factory troubled = [make, plan]() -> std::unique_ptr<actors::step_runner> {
    return std::make_unique<troubled_runner>(make(), plan);
  };
  if (turns) troubled = actors::take_turns(std::move(troubled), std::move(turns));
  return actors::start_engine_with(options, std::move(troubled));
}

/// Another name of a model, which requests to a pool may use.
std::string other_name(const small_model& model) {
  return "other-" + model.options.model.name;
}

void wait_ready(actors::engine_port& port) {
  wait_until([&] { return port.state() == engine_state::ready; },
             "the engine is ready; it says: " + port.state_detail());
}

// ---- actors that fail ------------------------------------------------------------------------

using kind = actors::actor_kind;
const std::array deaths = {target<actors::submit_prompt>(kind::batcher),
                           target<actors::step_result_ptr>(kind::batcher),
                           target<actors::kv_change>(kind::kv_allocator),
                           target<actors::block_request>(kind::kv_allocator),
                           target<actors::run_next>(kind::executor),
                           target<actors::token_ready>(kind::session),
                           target<actors::step_plan_ptr>(kind::executor)};
std::atomic<const message_target*> next_death{nullptr};
std::atomic<int> until_death{0};
std::atomic<std::uint64_t> n_deaths{0};

void die_in_time(kind actor, const std::type_info& message) {
  const message_target* next = next_death.load();
  if (next == nullptr || !next->is(actor, message) || until_death-- != 0) return;
  next_death = nullptr;
  n_deaths += 1;
  throw std::runtime_error("planned death");
}

/// Created before the engine starts, and kept until the engine has ended.
struct dying {
  dying(const message_target* first, int after) {
    next_death = first;
    until_death = after;
    actors::installed_probe() = die_in_time;
  }
  ~dying() {
    actors::installed_probe() = nullptr;
    next_death = nullptr;
  }
};

// ---- the plan of a world -----------------------------------------------------------------------

struct plan {
  config::options options; ///< without the options that belong to a model
  std::int64_t blocks = 0, host_blocks = 0, disk_blocks = 0;
  int awake = 1; ///< how many models of a pool have memory at once
  actors::run_order order = actors::run_order::waiting;
  std::shared_ptr<troubles> steps = std::make_shared<troubles>();
  const message_target* dies = nullptr;
  int dies_after = 0;
  struct act {
    std::size_t client; ///< a client's number; all clients if no client has this number
    std::size_t at;     ///< happens when that client has received so many events
    std::uint32_t numbers = 0;
    std::set<std::size_t> done = {}; ///< clients to which this has happened
  };
  std::vector<act> cuts, pauses, reloads, late, timeouts, orders;
  bool in_turns = false;   ///< several clients with priorities take turns
  bool of_tenants = false; ///< requests have tenants and salts of the cache
};

/// Chooses sizes. Small numbers give a world with few disturbances.
void set_sizes(const operation& o, const temp_folder& folder, plan& p) {
  auto& options = p.options;
  options.kv.block_tokens = std::array{16, 8, 32}[o.a % 3];
  options.scheduler.max_step_tokens = std::array{512, 24, 8, 48, 130}[o.a / 3 % 5];
  options.scheduler.max_running = std::array{16, 4, 2, 7, 1}[o.a / 15 % 5];
  options.scheduler.mixed_prompt_tokens = std::array{0, 5, 1, 17}[o.a / 75 % 4];
  options.kv.prefix_cache = o.b % 3 != 1;
  options.scheduler.policy = o.b / 3 % 3 == 1 ? "fcfs" : "fair";
  options.device.threads = o.b / 9 % 2 == 1 ? 1 : 2;
  p.in_turns = o.b / 18 % 2 == 1;
  p.order = o.b / 36 % 2 == 1 ? actors::run_order::ahead : actors::run_order::waiting;
  p.of_tenants = o.b / 72 % 2 == 1;
  if (p.of_tenants) {
    options.tenants.resize(2);
    options.tenants[0].name = "a";
    options.tenants[0].weight = 3;
    options.tenants[1].name = "b";
    options.tenants[1].max_running = 1;
  }
  p.awake = o.b / 144 % 4 == 0 ? 2 : 1;
  const std::int32_t least = most_tokens / options.kv.block_tokens;
  // Most worlds have blocks for one request and a little more.
  p.blocks = o.c % 4 == 0 ? 40 * least : least + o.c / 4 % 7;
  if (options.kv.prefix_cache && o.c / 28 % 3 != 0) p.host_blocks = 3 + o.c / 84 % 30;
  if (p.host_blocks > 0) p.steps->delay = std::chrono::microseconds(500);
  if (options.kv.prefix_cache && o.c / 28 % 3 == 2) {
    p.disk_blocks = 200;
    options.kv.disk_dir = folder.path() + "/kv";
  }
}

/// The options of one model's engine.
config::options options_of(const plan& p, const small_model& model) {
  config::options o = p.options;
  o.models.clear();
  o.model = model.options.model;
  o.kv.type = model.options.kv.type;
  o.scheduler.max_context_tokens = context_of(model);
  const std::int64_t block = block_bytes(model, o);
  o.kv.memory_bytes = p.blocks * block;
  o.kv.host_memory_bytes = p.host_blocks * block;
  o.kv.disk_memory_bytes = p.disk_blocks * block;
  return o;
}

plan plan_of(const model_list& models, std::size_t n_clients, const operations& how,
             const temp_folder& folder) {
  plan p;
  p.options = basic_options(*models.front());
  set_sizes(how.empty() ? operation{} : how.front(), folder, p);
  for (const small_model* model : models) {
    auto& one = p.options.models.emplace_back();
    one.key = one.model.name = model->options.model.name;
    one.aliases = {other_name(*model)};
  }
  if (models.size() == 1) p.options.models.clear();
  // In most worlds every client disconnects once in the middle of its answer.
  if (!how.empty() && how.front().a % 4 != 0)
    p.cuts.push_back({n_clients, 1 + how.front().c % 13, 0});
  for (std::size_t i = 1; i < how.size(); ++i) {
    const operation& o = how[i];
    // Early events are more likely than late ones.
    const plan::act act{o.a % (2 * n_clients), std::min(o.c % 24, o.c / 24 % 24), o.a / 64};
    switch (o.b % 9) {
    case 0:
    case 1:
      p.cuts.push_back(act);
      break;
    case 2:
      p.pauses.push_back(act);
      break;
    case 3:
      p.reloads.push_back(act);
      break;
    case 4: // few enough that the engine does not give up
      if (p.steps->failing.size() < 3) p.steps->failing.insert(o.c % 40);
      break;
    case 5:
      p.dies = &deaths[o.a % deaths.size()];
      p.dies_after = static_cast<int>(o.c % 30);
      break;
    case 6:
      p.timeouts.push_back(act);
      break;
    case 7:
      p.orders.push_back(act);
      break;
    default:
      p.late.push_back(act);
    }
  }
  return p;
}

/// Starts an engine for one model, and a pool for several.
std::unique_ptr<actors::engine> start(const model_list& models, const plan& p) {
  if (models.size() == 1)
    return start(*models.front(), options_of(p, *models.front()), p.order, p.steps);
  constexpr std::int64_t model_bytes = 10; // a size that only the pool's budget uses
  const auto turns = std::make_shared<actors::step_turns>();
  actors::pool_parts parts;
  parts.open = [models, p](std::size_t m) -> actors::result<actors::opened_model> {
    const auto own = options_of(p, *models[m]);
    return actors::opened_model{
        actors::make_served_text(own.model, models[m]->files, context_of(*models[m])), model_bytes};
  };
  parts.start = [models, p, turns](std::size_t m, const actors::opened_model&, std::int64_t) {
    return start(*models[m], options_of(p, *models[m]), p.order, p.steps, turns);
  };
  return actors::start_pool(p.options, p.awake * model_bytes, std::move(parts));
}

// ---- the run of a world ------------------------------------------------------------------------

/// What the engine reports of one run of a request when the run is over.
struct run_end {
  void hear(const actors::request_summary& about) {
    const std::lock_guard lock(mutex);
    n_heard += 1;
    status = about.status;
    failed = about.failed;
    use = about.use;
  }

  std::mutex mutex;
  int n_heard = 0;
  std::string status;
  bool failed = false;
  actors::usage use;
};

class disturbed_run {
public:
  disturbed_run(const model_list& models, const std::vector<world_request>& requests, plan& p,
                actors::engine& engine, happened& sums)
      : models_(models), requests_(requests), plan_(p), engine_(engine), port_(engine.port()),
        sums_(sums), clients_(requests.size()) {}

  void run() {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!all_over()) {
      demand(std::chrono::steady_clock::now() < end, "a request does not end: " + state_text());
      for (std::size_t i = 0; i < clients_.size(); ++i)
        tend(i);
      std::this_thread::sleep_for(50us);
    }
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const auto& [asked, expected, model] = requests_[i];
      const auto events = clients_[i].received.events();
      demand(clients_[i].received.broken().empty(), clients_[i].received.broken());
      const auto wrong = difference(events, expected, asked.sampling.n);
      demand(wrong.empty(), "request " + std::to_string(i) + ": " + wrong);
      if (!events.empty())
        sums_.cached_tokens += static_cast<std::uint64_t>(events.back().use.cached_tokens);
    }
  }

  /// To be called when all requests are over. A session that fails does not report its end.
  void check_ends(bool all_lived) {
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const client& c = clients_[i];
      const std::string of = " of request " + std::to_string(i);
      for (const auto& end : c.ends) {
        const std::lock_guard lock(end->mutex);
        demand(end->n_heard <= 1 && (end->n_heard == 1 || !all_lived),
               std::to_string(end->n_heard) + " ends of a run" + of);
      }
      const auto events = c.received.events();
      if (!c.received.run_is_over() || events.empty()) continue;
      const run_end& last = *c.ends.back();
      const bool by_length = std::any_of(events.begin(), events.end(), [](const auto& e) {
        return e.finish == actors::finish_reason::length;
      });
      demand(!last.failed && last.status == (by_length ? "length" : "stop"),
             "the end" + of + " is " + last.status);
      demand_equal(last.use.completion_tokens, events.back().use.completion_tokens,
                   "the number of output tokens at the end" + of);
    }
  }

private:
  struct client {
    heard received;
    actors::request_id id = 0;
    bool begun = false, over = false;
    int runs = 0, paused_for = 0;
    std::vector<std::shared_ptr<run_end>> ends = {}; ///< the ends of its runs
  };

  bool all_over() const {
    return std::all_of(clients_.begin(), clients_.end(), [](const client& c) { return c.over; });
  }
  std::string state_text() const {
    std::string text = port_.state_detail();
    for (std::size_t i = 0; i < clients_.size(); ++i)
      if (!clients_[i].over)
        text += "; request " + std::to_string(i) + " heard " +
                std::to_string(clients_[i].received.n_events()) + " events in " +
                std::to_string(clients_[i].runs) + " runs";
    return text;
  }

  /// Sends the request, or continues it behind the events that the client has received.
  void begin(std::size_t i) {
    client& c = clients_[i];
    demand(++c.runs < 60, "request " + std::to_string(i) + " fails time and again");
    auto asked = requests_[i].asked;
    const auto events = c.received.events();
    if (!events.empty()) {
      asked.continues = events.front().continuity;
      asked.made.resize(static_cast<std::size_t>(asked.sampling.n));
      for (const auto& e : events) {
        auto& made = asked.made[static_cast<std::size_t>(e.choice)];
        for (const auto& token : e.tokens)
          made.tokens.push_back(token.chosen.id);
        made.finished = made.finished || e.finish.has_value();
      }
    }
    if (plan_.in_turns) {
      asked.client = "client " + std::to_string(i % 3);
      if (plan_.options.scheduler.policy == "fair")
        asked.priority = static_cast<std::int32_t>(i % 2);
    }
    if (plan_.of_tenants) {
      asked.tenant = i % 2 == 0 ? "a" : "b";
      asked.cache_salt = i % 3 == 0 ? "" : "salt " + std::to_string(i % 3);
    }
    asked.model = name_of(i);
    for (const auto& act : plan_.timeouts)
      if (act.client == i && c.runs == 1)
        asked.timeout = std::chrono::milliseconds(1 + act.numbers % 50);
    c.ends.push_back(std::make_shared<run_end>());
    asked.on_end = [end = c.ends.back()](const actors::request_summary& about) {
      end->hear(about);
    };
    c.id = port_.submit(asked, c.received.next_run());
    if (asked.timeout.count() > 0) { // paused, so that the request does not end before its time
      port_.pause(c.id);
      c.paused_for = 6000;
    }
    c.begun = true;
  }

  /// Any of the names of the request's model.
  std::string name_of(std::size_t i) const {
    const std::size_t m = requests_[i].model;
    if (m == 0 && i % 3 == 0) return "";
    return i % 2 == 1 && models_.size() > 1 ? other_name(*models_[m])
                                            : models_[m]->options.model.name;
  }

  bool is_due(plan::act& act, std::size_t i) {
    const bool meant = act.client == i || act.client >= clients_.size();
    return meant && clients_[i].received.n_events() >= act.at && act.done.insert(i).second;
  }

  void tend(std::size_t i) {
    client& c = clients_[i];
    if (c.over) return;
    if (!c.begun) {
      const auto waits = std::find_if(plan_.late.begin(), plan_.late.end(),
                                      [i](const auto& act) { return act.client == i; });
      if (i > 0 && waits != plan_.late.end() && !clients_[i - 1].over &&
          clients_[i - 1].received.n_events() < waits->at)
        return;
      return begin(i);
    }
    if (c.received.run_is_over()) {
      const auto error = c.received.error();
      c.over = !error;
      if (!error) return;
      const bool timed_out = error->code == errc::timed_out && c.runs == 1;
      demand(may_be_tried_again(*error) || timed_out,
             "request " + std::to_string(i) + " is refused: " + error->message);
      wait_ready(port_);
      return begin(i);
    }
    for (auto& act : plan_.cuts)
      if (is_due(act, i)) return cut(i);
    for (auto& act : plan_.pauses)
      if (is_due(act, i)) {
        port_.pause(c.id);
        c.paused_for = 1 + static_cast<int>(act.numbers % 200);
        sums_.pauses += 1;
      }
    if (c.paused_for > 0 && --c.paused_for == 0) port_.resume(c.id);
    for (auto& act : plan_.reloads)
      if (is_due(act, i)) reload(act.numbers);
    for (auto& act : plan_.orders)
      if (models_.size() > 1 && is_due(act, i)) order(act.numbers);
  }

  void order(std::uint32_t numbers) {
    using actors::model_order;
    const auto& model = *models_[numbers % models_.size()];
    const auto what =
        std::array{model_order::sleep, model_order::unload, model_order::load}[numbers / 8 % 3];
    const auto done = port_.order_model(model.options.model.name, what);
    demand(done.ok() || done.code() != errc::unknown_model, "a model of the pool is unknown");
    sums_.orders += 1;
  }

  /// The client disconnects, and comes back for the rest of its answer.
  void cut(std::size_t i) {
    client& c = clients_[i];
    c.received.stop();
    // If the client has received its last event before it disconnects, it has its whole answer and
    // does not come back.
    const auto events = c.received.events();
    if (!events.empty() && events.back().last) {
      c.over = true;
      return;
    }
    port_.cancel(c.id);
    c.paused_for = 0;
    sums_.cuts += 1;
    begin(i);
  }

  void reload(std::uint32_t numbers) {
    config::options changed =
        models_.size() > 1 ? plan_.options : options_of(plan_, *models_.front());
    changed.sampling.temperature = 0.1 * (1 + numbers % 9);
    changed.sampling.top_k = 1 + static_cast<std::int32_t>(numbers % 5);
    changed.sampling.repetition_penalty = 1.5;
    // A request without max_tokens would get another limit when it continues.
    const bool all_bounded =
        std::all_of(requests_.begin(), requests_.end(),
                    [](const world_request& r) { return r.asked.sampling.max_tokens >= 0; });
    if (all_bounded) changed.limits.default_max_tokens = 3;
    engine_.reload(changed);
    sums_.reloads += 1;
  }

  const model_list& models_;
  const std::vector<world_request>& requests_;
  plan& plan_;
  actors::engine& engine_;
  actors::engine_port& port_;
  happened& sums_;
  std::deque<client> clients_;
};

} // namespace

struct quiet_engine::impl {
  std::unique_ptr<actors::engine> engine;
};

quiet_engine::quiet_engine(const small_model& model) : impl_(std::make_unique<impl>()) {
  auto options = basic_options(model);
  options.kv.prefix_cache = false;
  options.kv.memory_bytes = 100 * block_bytes(model, options);
  impl_->engine = start(model, options, actors::run_order::waiting, std::make_shared<troubles>());
  wait_ready(impl_->engine->port());
}

quiet_engine::~quiet_engine() = default;

std::vector<actors::event> quiet_engine::run(const actors::request& asked) {
  for (int tries = 0; tries < 20; ++tries) {
    const auto received = std::make_shared<heard>();
    impl_->engine->port().submit(
        asked, [received, hear = received->next_run()](actors::event e) { hear(std::move(e)); });
    wait_until([&] { return received->run_is_over(); }, "a request alone is over");
    demand(received->broken().empty(), received->broken());
    const auto error = received->error();
    if (!error) return received->events();
    demand(error->code == errc::grammar_refused, "a request alone is refused: " + error->message);
  }
  throw broken("a grammar is refused time and again");
}

void run_disturbed(const model_list& models, const std::vector<world_request>& requests,
                   const operations& how, happened& sums) {
  if (requests.empty()) return;
  const temp_folder folder;
  plan p = plan_of(models, requests.size(), how, folder);
  const dying probe(p.dies, p.dies_after);
  const auto deaths_before = n_deaths.load();
  {
    const auto engine = start(models, p);
    wait_ready(engine->port());
    disturbed_run run(models, requests, p, *engine, sums);
    run.run();
    auto& port = engine->port();
    const std::string faults = scripted::faults_at_rest(port);
    demand(faults.empty(), "what requests took does not add up: " + faults);
    run.check_ends(n_deaths.load() == deaths_before);
    const auto stats = port.stats();
    sums.preemptions += stats.preemptions;
    sums.restarts += stats.executor_restarts;
    sums.fetched_blocks += stats.kv_host_hits + stats.kv_disk_hits;
  }
  sums.deaths += n_deaths.load() - deaths_before;
}

} // namespace twill::test
