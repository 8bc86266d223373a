// compile_queue compared with a plain list of the waiting clients, in the order of their turns.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/structured/compile_queue.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill::actors;
using namespace twill::test;

namespace {

struct waiting {
  std::string client;
  int order;
};

/// Plays random operations on a compile_queue of requests for grammars. Clients take turns, in the
/// order of the later of two times: when the client's oldest waiting request came, and when the
/// client was last served.
void play(const operations& sequence) {
  compile_queue<int> queue;
  std::vector<waiting> all;
  std::vector<std::string> turns; // the clients that wait, in the order of their turns
  int last = 0;
  const auto waits = [&](const std::string& client) {
    return std::any_of(all.begin(), all.end(),
                       [&](const waiting& one) { return one.client == client; });
  };
  for (const operation& op : sequence) {
    if (op.kind % 5 < 3) {
      const std::string client =
          op.a % 4 == 0 ? "" : std::string(1, static_cast<char>('a' + op.a % 4));
      if (!waits(client)) turns.push_back(client);
      all.push_back({client, ++last});
      queue.push(client, last);
    } else {
      const auto next = queue.pop();
      demand_equal(next.has_value(), !all.empty(), "whether an order waits");
      if (!next) continue;
      const std::string client = turns.front();
      const auto first = std::find_if(all.begin(), all.end(),
                                      [&](const waiting& one) { return one.client == client; });
      demand_equal(*next, first->order, "the next order");
      all.erase(first);
      turns.erase(turns.begin());
      if (waits(client)) turns.push_back(client);
    }
    demand_equal(queue.empty(), all.empty(), "whether nothing waits");
  }
}

} // namespace

TEST_CASE("grammars are compiled in the order of a plain list of turns") {
  CHECK(first_failure({.cases = 1000, .long_cases = 50'000}, play) == "");
}
