// made_up_time: a clock that stands still while any handler is ready to run, and then jumps to the
// next timer, so that a run takes exactly the time that its script gives, however busy the machine
// is.
//
// The handlers run on one I/O thread.
#pragma once

#include <map>
#include <memory>

#include "tools/twill-bench/engine/timekeeper.hpp"

namespace twill::tests {

class made_up_time final : public bench::timekeeper {
public:
  bench::clock::time_point now() const override { return now_; }
  std::unique_ptr<bench::alarm> make_alarm(boost::asio::io_context& context) override;
  void run(boost::asio::io_context& context) override;

private:
  class made_up_alarm;
  bench::clock::time_point now_{};
  std::multimap<bench::clock::time_point, made_up_alarm*> due_;
};

} // namespace twill::tests
