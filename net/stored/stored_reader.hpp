// stored_reader: one follower of a stored response, which gets the response's events from the first
// one on.
//
// An event is decoded from its record, the stored bytes of the event, only when the follower has
// room for another event, so that a long response takes no more memory than its records. The mutex
// of the stored_service guards all members.
#pragma once

#include <deque>

#include "net/connection/event_source.hpp"
#include "net/stored/choice_order.hpp"
#include "net/stored/stored_table.hpp"

namespace twill::net {

class stored_service;

class stored_reader final : public event_source,
                            public std::enable_shared_from_this<stored_reader> {
public:
  /// `bytes` is the head and the records of the stored response `entry`. The reader shares their
  /// ownership, because the entry of a finished response may release them. If `n_choices` is
  /// greater than 1, choice_order orders the events. If `shows_begin` is set, the first event is
  /// empty and comes once the response is in the journal (the file of running responses); all later
  /// events, including errors, belong to the response itself.
  stored_reader(stored_service& service, stored_entry_ptr entry,
                std::shared_ptr<stored_bytes> bytes, std::int32_t n_choices, bool shows_begin)
      : service_(service), entry_(std::move(entry)), bytes_(std::move(bytes)),
        shows_begin_(shows_begin) {
    if (n_choices > 1) order_.emplace(n_choices);
  }
  ~stored_reader() override;

  void start(actors::event_callback deliver, const std::string& client) override;
  void leave() override;
  void end() override;
  void pause() override;
  void resume() override;
  void taken(std::size_t n) override;

  // --- for the service, which holds its mutex ----------------------------------------------------

  /// Makes this reader the one that begins the response: its start() hands `asked` to the service.
  void begins_with(actors::request asked) { asked_ = std::move(asked); }
  /// The reader delivers only the empty first event, with `last` set.
  void wants_only_begin() { only_begin_ = true; }
  /// Delivers those of the first `n_shown` records that may be delivered now.
  void pump(std::size_t n_shown);
  /// Called when the beginning of the response and its first `n_shown` records are in the journal.
  void on_begun(std::size_t n_shown);
  /// Whether all of the first `n_shown` records have been delivered.
  bool has_all(std::size_t n_shown) const { return next_ == n_shown && in_turn_.empty(); }
  /// Delivers an error that is not one of the response's records, and ends the reading.
  void end_with(actors::request_error error);

private:
  friend class stored_service;

  std::optional<actors::event> next_event(std::size_t n_shown);
  void deliver(actors::event&& ev);

  stored_service& service_;
  stored_entry_ptr entry_;
  std::shared_ptr<stored_bytes> bytes_;
  std::optional<actors::request> asked_;
  actors::event_callback deliver_;
  std::size_t next_ = 0; ///< index of the record that is decoded next
  std::optional<choice_order> order_;
  /// If `order_` is set: indices of the records that are delivered next.
  std::deque<std::size_t> in_turn_;
  /// How many events may be delivered before the follower must report some as processed.
  std::size_t room_ = 64;
  bool shows_begin_; ///< the empty first event must still be delivered
  bool begun_ = false;
  bool only_begin_ = false;
  bool paused_ = false;
  bool ended_ = false;
};

} // namespace twill::net
