// stored_context: makes the codec_context (the model and the limits that a parser of bodies checks
// against) with which the body of a stored response is parsed again, in order to show the
// response's events or result. The context uses neither a loaded model nor the configured limits,
// but limits so large that a body which was valid when it was stored stays valid. Only one thread
// at a time may use a stored_context, which refers to its constructor's arguments.
#pragma once

#include <limits>
#include <string>

#include "net/protocol/codec.hpp"

namespace twill::net {

class stored_context {
public:
  stored_context(const stored_head& head, const actors::engine_port& engine)
      : head_(head), engine_(engine) {
    constexpr auto most = std::numeric_limits<std::int32_t>::max();
    model_.id = head.model;
    model_.max_model_len = most;
    limits_.max_choices = limits_.max_logprobs = limits_.max_stop_strings = most;
  }

  codec_context get() const { return {model_, limits_, engine_, nothing_, head_.tenant, no_name_}; }

private:
  const stored_head& head_;
  const actors::engine_port& engine_;
  actors::model_info model_;
  config::limit_options limits_;
  const std::string no_name_; ///< unused, because the stored head contains the id of the response
  find_response nothing_ = [](const auto&, const auto&) { return nullptr; };
};

} // namespace twill::net
