#include "tools/twill-bench/engine/timekeeper.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace twill::bench {
namespace {

namespace asio = boost::asio;

class real_alarm final : public alarm {
public:
  explicit real_alarm(asio::io_context& context) : timer_(context) {}

  asio::awaitable<void> wait_until(clock::time_point when) override {
    boost::system::error_code woken;
    timer_.expires_at(when);
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  void cancel() override { timer_.cancel(); }

private:
  asio::steady_timer timer_;
};

class real_timekeeper final : public timekeeper {
public:
  clock::time_point now() const override { return clock::now(); }
  std::unique_ptr<alarm> make_alarm(asio::io_context& context) override {
    return std::make_unique<real_alarm>(context);
  }
  void run(asio::io_context& context) override { context.run(); }
};

} // namespace

timekeeper& real_time() {
  static real_timekeeper only;
  return only;
}

} // namespace twill::bench
