// What a request must yield, from the definitions alone: one pass over the prompt and the whole
// output gives the logits of every token, and each token, score, text and end is checked against
// them with counts, bans and masks that are made from scratch for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "tests/actors/meaning/small_models.hpp"

namespace twill::test {

class reference {
public:
  explicit reference(const small_model& model);
  ~reference();

  /// Throws `broken` unless these may be the events of the request in an engine that nothing
  /// disturbs.
  void check(const actors::request& asked, const std::vector<actors::event>& events);

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::test
