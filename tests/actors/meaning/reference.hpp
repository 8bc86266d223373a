// What a request must yield, from the definitions alone. One pass over the prompt and the whole
// output gives the logits of every token; each token, score, text and finish reason is checked
// against them, with counts, bans and masks that are computed anew for each token.
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

  /// Throws `broken` if the events cannot be those of the request in an undisturbed engine.
  void check(const actors::request& asked, const std::vector<actors::event>& events);

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::test
