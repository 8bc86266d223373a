// settled_source: an event source for calls that need no engine; its only event is the end.
#pragma once

#include <string>
#include <utility>

#include "net/connection/event_source.hpp"

namespace twill::net {

class settled_source final : public event_source {
public:
  void start(actors::event_callback deliver, const std::string&) override {
    actors::event end;
    end.finish = actors::finish_reason::stop;
    end.last = true;
    deliver(std::move(end));
  }
  void leave() override {}
  void end() override {}
  void pause() override {}
  void resume() override {}
  void taken(std::size_t) override {}
};

} // namespace twill::net
