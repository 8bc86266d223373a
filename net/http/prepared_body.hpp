// prepared_body: a parsed JSON body together with the model that it names. Any thread.
#pragma once

#include <string>

#include "net/http/request_scope.hpp"
#include "net/protocol/codec.hpp"

namespace twill::net {

struct prepared_body {
  value body;
  actors::model_info model;
  std::string tenant;
  settings_ptr current; ///< of when it arrived
  server_context& server;

  codec_context context() const {
    return {model,  current->limits,           server.engine, server.find_previous,
            tenant, server.options.server.name};
  }
};

result<prepared_body> prepare_body(const request_scope& scope);

} // namespace twill::net
