// stored_reader: one who follows a stored response, from its first event on.
//
// Events are made from the records when there is room for them at the reader's, so that a long
// response takes no more memory than its records. Its service's mutex guards all of it.
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
  /// `bytes` are the entry's, which may not hold them any more once it is over. Events of several
  /// choices come in their order (choice_order).
  /// `shows_begin`: the first event says nothing, and comes once the response is written down. All
  /// that comes after it is the response's own, errors included.
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

  // --- for the service, under its mutex ----------------------------------------------------------

  /// This reader begins the response: start() starts it.
  void begins_with(actors::request asked) { asked_ = std::move(asked); }
  /// Only the event that says nothing is wanted, with `last`.
  void wants_only_begin() { only_begin_ = true; }
  /// Delivers what may be delivered of the first `n_shown` records.
  void pump(std::size_t n_shown);
  /// The response is written down, and its first `n_shown` records are.
  void on_begun(std::size_t n_shown);
  /// Nothing of the first `n_shown` records is left to deliver.
  bool has_all(std::size_t n_shown) const { return next_ == n_shown && in_turn_.empty(); }
  /// Delivers an event that is no record, and ends.
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
  std::size_t next_ = 0; ///< the record that is looked at next
  std::optional<choice_order> order_;
  std::deque<std::size_t> in_turn_; ///< with `order_`: the records that are delivered next
  std::size_t room_ = 64;           ///< events that may be delivered before some are taken
  bool shows_begin_;                ///< and has not yet
  bool begun_ = false;
  bool only_begin_ = false;
  bool paused_ = false;
  bool ended_ = false;
};

} // namespace twill::net
