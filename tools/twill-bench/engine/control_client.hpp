// control_client: a client for the few plain HTTP calls before a run, such as the model list and
// the tokenizer.
//
// Its calls block. It has one connection and is used from one thread. It throws nothing: a failed
// call has status 0, and `error` says why.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"

namespace twill::bench {

struct reply {
  int status = 0; ///< HTTP status; 0: no reply
  std::string body;
  std::string error; ///< why there was no reply
  bool ok() const { return status == 200; }
};

class control_client {
public:
  /// `cacert` is the PEM file of the certificate authorities to trust; empty: the system's.
  control_client(const std::string& base_url, std::vector<name_value> headers,
                 std::string cacert = {});
  ~control_client();

  reply get(std::string_view path);
  reply post(std::string_view path, const std::string& json_body);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace twill::bench
