// stored_request: which parts of a parsed request are stored, and how the stored values are put
// back into the request when its body is parsed again. The functions are pure.
#pragma once

#include "config/base/value.hpp"
#include "config/options.hpp"
#include "net/protocol/codec.hpp"

namespace twill::net {

/// Makes the stored_head of a request, which has everything that is needed to parse the request
/// again. `more` is added to it: values that only one API needs.
stored_head head_of(const reply_identity& identity, const config::sampling_params& sampling,
                    const value& body, const std::string& tenant, value_object more = {});
/// The request body as the client sent it.
result<const value*> body_of(const stored_head& head);
reply_identity identity_of(const stored_head& head);

/// Stores the values of sampling parameters that a body may leave to defaults. The defaults may
/// have changed when the body is parsed again.
void add_sampling(value_object& asked, const config::sampling_params& sampling);
/// Restores the values that add_sampling() stored. Parameters that `asked` does not contain are
/// left unchanged.
void restore_sampling(const value& asked, config::sampling_params& sampling);

} // namespace twill::net
