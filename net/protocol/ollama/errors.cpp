#include "net/protocol/ollama/errors.hpp"

#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

std::string ollama_error_body(const api_error& error) {
  std::string out;
  json_writer(out).begin_object().field("error", error.message).end_object();
  return out;
}

} // namespace twill::net
