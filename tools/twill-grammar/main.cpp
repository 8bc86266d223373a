// twill-grammar: the helper process that compiles one grammar within limits; started by the daemon
// and by `twill grammar`, never by people. The request comes on standard input, the answer goes to
// standard output.
#include "models/text/grammar/helper/serve.hpp"

int main() {
  return twill::models::grammar::serve_one_request(0, 1);
}
