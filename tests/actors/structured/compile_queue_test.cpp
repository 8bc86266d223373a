// The order in which grammars are compiled.
#include "actors/structured/compile_queue.hpp"

#include <string>

#include "tests/catch.hpp"

using twill::actors::compile_queue;

TEST_CASE("clients take turns, and each one's orders keep their order") {
  compile_queue<std::string> queue;
  for (const char* order : {"a1", "a2", "a3", "b1"})
    queue.push(std::string(1, order[0]), order);
  CHECK(queue.pop() == "a1");
  queue.push("c", "c1");
  std::string rest;
  while (const auto next = queue.pop())
    rest += *next + " ";
  CHECK(rest == "b1 a2 c1 a3 ");
  CHECK(queue.empty());
}
