#include "tests/tools/made_up_time.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace twill::tests {

namespace asio = boost::asio;

class made_up_time::made_up_alarm final : public bench::alarm {
public:
  made_up_alarm(made_up_time& time, asio::io_context& context) : time_(time), never_(context) {}

  asio::awaitable<void> wait_until(bench::clock::time_point when) override {
    if (when <= time_.now_) co_return;
    boost::system::error_code woken;
    never_.expires_at(bench::clock::time_point::max());
    const auto mine = time_.due_.emplace(when, this);
    co_await never_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    time_.due_.erase(mine);
  }
  void cancel() override { never_.cancel(); }

private:
  made_up_time& time_;
  asio::steady_timer never_;
};

std::unique_ptr<bench::alarm> made_up_time::make_alarm(asio::io_context& context) {
  return std::make_unique<made_up_alarm>(*this, context);
}

void made_up_time::run(asio::io_context& context) {
  while (!context.stopped()) {
    if (context.poll() > 0) continue;
    if (due_.empty()) return; // no wait ends by time
    now_ = due_.begin()->first;
    due_.begin()->second->cancel();
  }
}

} // namespace twill::tests
