// stored_request: what is kept of a request whose body a codec has read, and what goes back into
// the request when the body is read anew. Pure.
#pragma once

#include "config/base/value.hpp"
#include "config/options.hpp"
#include "net/protocol/codec.hpp"

namespace twill::net {

/// What is stored of a body that was read as a request with this identity and sampling; `more` is
/// the protocol's own.
stored_head head_of(const reply_identity& identity, const config::sampling_params& sampling,
                    const value& body, const std::string& tenant, value_object more = {});
/// The body as it came.
result<const value*> body_of(const stored_head& head);
reply_identity identity_of(const stored_head& head);

/// The sampling where a body leaves it to defaults, which may be others when it is read anew.
void add_sampling(value_object& asked, const config::sampling_params& sampling);
/// Leaves alone what `asked` does not say.
void restore_sampling(const value& asked, config::sampling_params& sampling);

} // namespace twill::net
