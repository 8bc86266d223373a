// compile_queue: the queue of orders to compile a grammar, all of which one thread carries out.
// Clients take turns, and among the orders of one client the earliest comes first. An object has no
// side effects outside itself; one thread at a time may use it.
#pragma once

#include <deque>
#include <list>
#include <optional>
#include <string>
#include <utility>

namespace twill::actors {

template <class Order>
class compile_queue {
public:
  void push(const std::string& client, Order order) {
    for (auto& line : lines_) {
      if (line.first != client) continue;
      line.second.push_back(std::move(order));
      return;
    }
    lines_.emplace_back(client, std::deque<Order>());
    lines_.back().second.push_back(std::move(order));
  }
  /// Returns the next order, and moves its client to the end of the line.
  std::optional<Order> pop() {
    if (lines_.empty()) return std::nullopt;
    auto& orders = lines_.front().second;
    std::optional<Order> next(std::move(orders.front()));
    orders.pop_front();
    if (orders.empty())
      lines_.pop_front();
    else
      lines_.splice(lines_.end(), lines_, lines_.begin());
    return next;
  }
  bool empty() const { return lines_.empty(); }

private:
  /// orders by client; the client whose turn it is comes first
  std::list<std::pair<std::string, std::deque<Order>>> lines_;
};

} // namespace twill::actors
