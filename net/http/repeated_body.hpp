// repeated_body: whether a body repeats that of an earlier request, which came to us by a router.
#pragma once

#include "config/base/value.hpp"

namespace twill::net {

/// Routers such as vllm-router send on a body in another order of members and with members that
/// they add, and a client that repeats its request may come by another way. So all that `body`
/// says must be what `asked` says, in whatever order and however numbers are written, and `asked`
/// may say more, but not another prompt. Both are objects.
bool repeats(const value& body, const value& asked);

} // namespace twill::net
