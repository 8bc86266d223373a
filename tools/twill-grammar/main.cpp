// twill-grammar: a helper process that compiles one grammar within limits on its resources. The
// daemon and `twill grammar` start it; users do not. It reads a request from standard input and
// writes the answer to standard output.
#include "config/base/standard_streams.hpp"
#include "models/text/grammar/helper/serve.hpp"

int main() {
  twill::open_missing_standard_streams();
  return twill::models::grammar::serve_one_request(0, 1);
}
