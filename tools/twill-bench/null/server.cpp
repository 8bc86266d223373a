#include "tools/twill-bench/null/server.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tools/twill-bench/null/shard.hpp"

namespace twill::bench {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

struct null_server::state {
  std::vector<std::unique_ptr<null_shard>> shards;
};

null_server::null_server(const null_options& options) : state_(new state) {
  error_code error;
  const auto address = asio::ip::make_address(options.host, error);
  if (error) throw std::runtime_error("--listen must be an address, got " + options.host);
  tcp::endpoint where(address, options.port);
  try {
    for (unsigned i = 0; i < std::max(1u, options.threads); ++i) {
      state_->shards.push_back(std::make_unique<null_shard>(options, where));
      where = state_->shards.front()->where();
    }
  } catch (const boost::system::system_error& failed) {
    throw std::runtime_error("cannot listen on " + options.host + ":" +
                             std::to_string(options.port) + ": " + failed.code().message());
  }
}

null_server::~null_server() {
  stop();
}

std::string null_server::url() const {
  const tcp::endpoint where = state_->shards.front()->where();
  const std::string host = where.address().to_string();
  return "http://" + (where.address().is_v6() ? "[" + host + "]" : host) + ":" +
         std::to_string(where.port());
}

void null_server::run() {
  std::vector<std::thread> threads;
  for (const auto& each : state_->shards)
    threads.emplace_back([&each] { each->run(); });
  for (std::thread& each : threads)
    each.join();
}

void null_server::stop() {
  for (const auto& each : state_->shards)
    each->stop();
}

} // namespace twill::bench
