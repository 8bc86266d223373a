// twill-grammar: the helper process that compiles one grammar within limits; started by the daemon
// and by `twill grammar`, never by people. The request comes on standard input, the answer goes to
// standard output.
#include "config/base/standard_streams.hpp"
#include "models/text/grammar/helper/serve.hpp"

int main() {
  twill::open_missing_standard_streams();
  return twill::models::grammar::serve_one_request(0, 1);
}
