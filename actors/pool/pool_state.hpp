// pool_state: which of several models has its weights in memory: a state machine without I/O.
//
// It is told facts (a request has come, a model is loaded) with the time, and orders are taken from
// it, which its owner carries out and answers with further facts. Promises, which property tests
// hold it to:
// - The grants of all models that are in memory, or on their way there or back, are within the
//   budget. A grant is the device memory that a model may take.
// - A pinned model is never put to sleep, but by an administrator's order; its memory is kept free
//   for it.
// - Models are loaded one after another, in the order in which their oldest waiting requests came;
//   nobody passes but pinned models, whose room is free. Room is made by the model that was used
//   least recently, of those without a request. Where all have requests, the one that has been
//   there longest takes no new ones and sleeps when those under way have ended. It is left alone
//   until it has been there for as long as it took to load, so that at most half of the time goes
//   to loading. So every request is served or refused, as long as requests and loads end.
//
// One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace twill::actors {

class pool_state {
public:
  using clock = std::chrono::steady_clock;
  using time = clock::time_point;
  using duration = clock::duration;
  using index = std::size_t;

  struct model_rules {
    bool pinned = false;
    duration keep_alive{0}; ///< 0: no limit
  };
  struct limits {
    std::int64_t budget = 0; ///< bytes
    /// After a load that failed, requests are refused for `first`, then for twice as long, up to
    /// `most`.
    duration first_retry{std::chrono::seconds(1)}, most_retry{std::chrono::seconds(30)};
  };

  enum class phase {
    closed,   ///< its files are not open
    opening,  ///< they are being opened
    fetching, ///< they are on their way to this machine first, which may take hours: requests are
              ///< refused, and nobody waits for it
    asleep,   ///< they are open; it has no memory
    loading,
    awake,
    draining, ///< it takes no new requests, and leaves when those under way have ended
    leaving,  ///< its memory is being given back
    failed,   ///< to fetch, to open or to load
  };

  // Orders.
  struct open {
    index model;
  };
  struct load {
    index model;
    std::int64_t grant;
  };
  struct leave {
    index model;
  };
  struct close { ///< forget its files
    index model;
  };
  struct send_waiting { ///< every waiting request counts as under way from now on
    index model;
  };
  struct refuse_waiting { ///< no request waits any more; detail() says why
    index model;
  };
  using order = std::variant<open, load, leave, close, send_waiting, refuse_waiting>;

  enum class verdict { send, wait, refuse };

  pool_state(std::vector<model_rules> models, const limits& bounds);

  /// Opens every model; those that are pinned are loaded.
  void begin(time now);
  /// A model that is being opened must be fetched first. It is opened or fails afterwards.
  void fetching(index m, time now);
  void opened(index m, std::int64_t need, time now);
  void open_failed(index m, std::string why, time now);
  void loaded(index m, time now);
  void load_failed(index m, std::string why, time now);
  void left(index m, time now);

  /// A request for a model. After `send` it is under way, after `wait` it waits.
  verdict asked(index m, time now);
  void ended(index m, time now);   ///< a request under way
  void gave_up(index m, time now); ///< a request that waited

  // An administrator's orders. A model that serves requests sleeps when they have ended.
  void ask_load(index m, time now);
  void ask_sleep(index m, time now);
  void ask_unload(index m, time now);

  /// The time that wake_at() named has come.
  void woken(time now) { settle(now); }
  std::optional<time> wake_at() const { return wake_at_; }

  /// The order that is to be carried out first, until it is dropped; null when there is none.
  const order* next_order() const { return orders_.empty() ? nullptr : &orders_.front(); }
  void drop_order() { orders_.erase(orders_.begin()); }

  phase now(index m) const { return models_[m].state; }
  /// Why it failed, also while it is tried again, or that it is being fetched; empty otherwise.
  const std::string& detail(index m) const { return models_[m].detail; }
  std::int64_t need(index m) const { return models_[m].need; }
  std::int64_t grant(index m) const { return models_[m].grant; }
  std::size_t under_way(index m) const { return models_[m].under_way; }
  std::size_t waiting(index m) const { return models_[m].waiting; }
  std::int64_t granted() const; ///< the sum of all grants
  std::int64_t budget() const { return limits_.budget; }
  std::size_t size() const { return models_.size(); }
  /// Every model has been opened, has failed or is being fetched, and every other pinned one has
  /// been loaded, has failed or sleeps by an administrator's order.
  bool begun() const;

private:
  struct one {
    model_rules rules;
    phase state = phase::closed;
    std::string detail;
    std::int64_t need = 0;  ///< known once it was opened
    std::int64_t grant = 0; ///< while it has memory
    std::size_t under_way = 0, waiting = 0;
    std::optional<std::uint64_t> wanted; ///< it is to be loaded; a lower number comes first
    time last_used{}, load_began{}, awake_since{}, retry_at{};
    duration load_time{};
    int failures = 0;
    bool load_ordered = false; ///< wanted whether or not a request waits
    bool by_order = false;     ///< it drains by an administrator's order, not to make room
    bool forgotten = false;    ///< its files are to be closed once it has left
    bool begun = false;
  };

  void settle(time now);
  void sleep_unused(time now);
  void take_next(time now);
  bool make_room(index wanted, std::int64_t grant, time now);
  void start_leaving(one& m);
  void refuse_waiting_for(one& m);
  void fail(index m, std::string why, time now);
  void wake_by(time at);
  void want(one& m);
  std::optional<index> next_wanted() const;
  static bool wants_memory(const one& m);
  static bool is_opening(const one& m);
  bool holds_memory(const one& m) const;
  index index_of(const one& m) const { return static_cast<index>(&m - models_.data()); }

  std::vector<one> models_;
  limits limits_;
  std::vector<order> orders_; ///< with room for more than are ever there, so that memory which is
                              ///< short loses none
  std::uint64_t n_wanted_ = 0;
  std::optional<time> wake_at_;
};

} // namespace twill::actors
