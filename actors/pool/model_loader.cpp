#include "actors/pool/model_loader.hpp"

#include <chrono>
#include <exception>
#include <future>
#include <thread>
#include <utility>

namespace twill::actors {

namespace {

/// Turns an exception into a failure with its text.
template <class F>
auto guarded(F&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    return failure{errc::executor_failed, std::string(error.what())};
  }
}

} // namespace

model_loader::model_loader(std::size_t n_models, pool_parts parts, reports to)
    : parts_(std::move(parts)), to_(std::move(to)) {
  fetches_.resize(n_models);
  for (std::size_t m = 0; m < n_models; ++m)
    if (parts_.is_fetched(m)) fetches_[m] = std::make_unique<job_thread>();
}

void model_loader::open(std::size_t model) {
  if (!fetches_[model]) return open_now(model);
  fetches_[model]->give([this, model] {
    auto fetched = guarded([&]() -> result<opened_model> {
      parts_.fetch(model, [this, model] { to_.fetching(model); });
      return opened_model{};
    });
    fetched.ok() ? open_now(model) : to_.opened(model, fetched);
  });
}

void model_loader::open_now(std::size_t model) {
  jobs_.give([this, model] {
    auto opened = guarded([&] { return parts_.open(model); });
    to_.opened(model, opened);
  });
}

void model_loader::load(std::size_t model, std::shared_ptr<const opened_model> opened,
                        std::int64_t grant_bytes) {
  jobs_.give([this, model, opened = std::move(opened), grant_bytes] {
    load_now(model, opened.get(), grant_bytes);
  });
}

void model_loader::end(std::size_t model, engine_port& port) {
  jobs_.give([this, model, &port] { end_now(model, port); });
}

void model_loader::close(std::shared_ptr<const opened_model> files) {
  jobs_.give([files = std::move(files)]() mutable { files.reset(); });
}

void model_loader::stop() {
  jobs_.end_soon();
  for (const auto& one : fetches_)
    if (one) one->stop();
  jobs_.stop();
}

void model_loader::load_now(std::size_t model, const opened_model* opened,
                            std::int64_t grant_bytes) {
  auto started = guarded([&]() -> result<std::unique_ptr<engine>> {
    if (opened == nullptr) return failure{errc::not_ready, "its files are not open"};
    auto made = parts_.start(model, *opened, grant_bytes);
    while (made->port().state() == engine_state::loading) {
      if (jobs_.stopping()) return std::unique_ptr<engine>();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (made->port().state() == engine_state::failed)
      return failure{errc::not_ready, made->port().state_detail()};
    return made;
  });
  if (started.ok() && started.value() == nullptr) return; // the pool is ending
  to_.loaded(model, started);
}

void model_loader::end_now(std::size_t model, engine_port& port) {
  // Its clients have received their last events, but sessions may still be counting usage.
  const auto ended = std::make_shared<std::promise<void>>();
  port.drain([ended] { ended->set_value(); });
  ended->get_future().wait_for(std::chrono::seconds(2));
  to_.give_up(model).reset();
  to_.left(model);
}

} // namespace twill::actors
