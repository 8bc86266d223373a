// pool_state: decides which of several models have their weights in memory. A state machine without
// I/O.
//
// Its owner reports facts with their time (a request has come, a model is loaded), takes orders
// from it, carries them out, and reports the results as further facts. Property tests check these
// promises:
// - The grants of all models that are in memory, being loaded or being unloaded stay within the
//   budget. A grant is the device memory that a model may take.
// - A pinned model is put to sleep only by an administrator's order; its memory is kept free for
//   it.
// - Models are loaded one after another, in the order in which their oldest waiting requests came.
//   Only pinned models, whose memory is kept free, pass others.
// - To make room, the least recently used model without a request is put to sleep. If all models
//   have requests, the one that has been in memory longest takes no new requests and sleeps when
//   those under way have ended. A model is not chosen for this until it has been in memory for as
//   long as its load took, so that at most half of the time goes to loading. So every request is
//   served or refused, as long as requests and loads end.
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
    /// After a failed load, requests are refused for `first_retry`; the time doubles with each
    /// further failure, up to `most_retry`.
    duration first_retry{std::chrono::seconds(1)}, most_retry{std::chrono::seconds(30)};
  };

  enum class phase {
    closed,  ///< the model's files are not open
    opening, ///< the files are being opened
    /// The files are fetched to this machine first, which may take hours; requests are refused
    /// meanwhile.
    fetching,
    asleep, ///< the files are open; the model has no memory
    loading,
    awake,
    /// the model takes no new requests, and leaves memory when those under way have ended
    draining,
    leaving, ///< its memory is being released
    failed,  ///< fetching, opening or loading the model failed
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
  struct close { ///< close the model's files
    index model;
  };
  struct send_waiting { ///< send all waiting requests, which count as under way from now on
    index model;
  };
  struct refuse_waiting { ///< refuse all waiting requests; detail() says why
    index model;
  };
  using order = std::variant<open, load, leave, close, send_waiting, refuse_waiting>;

  enum class verdict { send, wait, refuse };

  pool_state(std::vector<model_rules> models, const limits& bounds);

  /// Opens every model, and loads the pinned ones.
  void begin(time now);
  /// A model that is being opened must be fetched first. Afterwards it is opened, or fails.
  void fetching(index m, time now);
  void opened(index m, std::int64_t need, time now);
  void open_failed(index m, std::string why, time now);
  void loaded(index m, time now);
  void load_failed(index m, std::string why, time now);
  void left(index m, time now);

  /// A request for a model has come. After the verdict `send` it counts as under way, after `wait`
  /// it waits.
  verdict asked(index m, time now);
  void ended(index m, time now);   ///< a request under way has ended
  void gave_up(index m, time now); ///< a waiting request was given up

  // An administrator's orders. A model that serves requests is put to sleep when they have ended.
  void ask_load(index m, time now);
  void ask_sleep(index m, time now);
  void ask_unload(index m, time now);

  /// The time that wake_at() returned has come.
  void woken(time now) { settle(now); }
  std::optional<time> wake_at() const { return wake_at_; }

  /// The next order to carry out; it stays the same until drop_order(). Null if there is none.
  const order* next_order() const { return orders_.empty() ? nullptr : &orders_.front(); }
  void drop_order() { orders_.erase(orders_.begin()); }

  phase now(index m) const { return models_[m].state; }
  /// A text for clients: why the model failed (also while it is tried again), or the notice that it
  /// is being fetched. Empty otherwise.
  const std::string& detail(index m) const { return models_[m].detail; }
  std::int64_t need(index m) const { return models_[m].need; }
  std::int64_t grant(index m) const { return models_[m].grant; }
  std::size_t under_way(index m) const { return models_[m].under_way; }
  std::size_t waiting(index m) const { return models_[m].waiting; }
  std::int64_t granted() const; ///< the sum of all grants
  std::int64_t budget() const { return limits_.budget; }
  std::size_t size() const { return models_.size(); }
  /// Whether the start is complete: every model was opened, has failed or is being fetched, and
  /// every pinned model (one that is to stay in memory) that is not being fetched was loaded, has
  /// failed or sleeps by an administrator's order.
  bool begun() const;

private:
  struct one {
    model_rules rules;
    phase state = phase::closed;
    std::string detail;
    std::int64_t need = 0;  ///< known once the model was opened
    std::int64_t grant = 0; ///< nonzero while the model has memory
    std::size_t under_way = 0, waiting = 0;
    /// set if it is to be loaded; a lower number is loaded earlier
    std::optional<std::uint64_t> wanted;
    time last_used{}, load_began{}, awake_since{}, retry_at{};
    duration load_time{};
    int failures = 0;
    bool load_ordered = false; ///< to be loaded even if no request waits
    bool by_order = false;     ///< it drains by an administrator's order and not to make room
    bool forgotten = false;    ///< its files are to be closed once its memory is released
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
  /// reserved for more orders than can ever wait, so that a lack of memory loses none
  std::vector<order> orders_;
  std::uint64_t n_wanted_ = 0;
  std::optional<time> wake_at_;
};

} // namespace twill::actors
