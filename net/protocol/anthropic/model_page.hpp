// model_page: the replies of GET /v1/models and /v1/models/{id} in Anthropic's form, for clients
// that send the header anthropic-version. The functions are pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "net/api_error.hpp"

namespace twill::net {

/// Which page of the list is wanted: at most `limit` models, after or before the model with the
/// given id. At most one of the two ids may be set.
struct model_cursor {
  std::size_t limit = 20;
  std::string before_id;
  std::string after_id;
};

/// Returns one page of the list, {"data":[...],"has_more","first_id","last_id"}.
result<std::string> model_page_body(std::span<const actors::model_info> models,
                                    const model_cursor& cursor);
std::string anthropic_model_body(const actors::model_info& model);

} // namespace twill::net
