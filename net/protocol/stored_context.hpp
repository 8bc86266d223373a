// stored_context: what a codec looks at when it reads a stored body anew, in order to show what
// became of it: no limit of today and no model.
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
  const std::string no_name_; ///< the head has the id
  find_response nothing_ = [](const auto&, const auto&) { return nullptr; };
};

} // namespace twill::net
