// Replaces kv_publisher.cpp in builds without ZeroMQ.
#include <stdexcept>

#include "net/kv_events/kv_publisher.hpp"

namespace twill::net {

std::unique_ptr<kv_publisher> kv_publisher::bind(const config::kv_event_options& options,
                                                 std::shared_ptr<actors::kv_event_source>) {
  throw std::runtime_error(
      "`kv.events` must be empty in this build of twill, got \"" + options.endpoint +
      "\": it was built without ZeroMQ; install libzmq3-dev and cppzmq-dev and "
      "build it again");
}

} // namespace twill::net
