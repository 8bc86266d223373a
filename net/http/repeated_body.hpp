// repeated_body: decides whether a request body repeats the body of an earlier request.
#pragma once

#include "config/base/value.hpp"

namespace twill::net {

/// True if `body` repeats the earlier body `asked`. Both must be objects. The bodies may differ in
/// form, because routers such as vllm-router forward bodies with reordered and with added members,
/// and a client may send its request again without the router. Therefore every member of `body`
/// must have an equal member in `asked`, whatever the order of members and the spelling of numbers.
/// `asked` may have further members, but `body` must have the members `messages`, `prompt` and
/// `input` that `asked` has.
bool repeats(const value& body, const value& asked);

} // namespace twill::net
