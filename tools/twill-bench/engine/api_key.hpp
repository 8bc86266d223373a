// api_key: the API key that requests carry, and the advice for the user when the server refuses it.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"

namespace twill::bench {

/// Returns `headers` with an `Authorization` header that carries `given` (--api-key), or
/// TWILL_API_KEY where `given` is empty, or else OPENAI_API_KEY. An `Authorization` among `headers`
/// is kept instead. Throws std::invalid_argument for a key that a header cannot carry.
std::vector<name_value> with_api_key(std::vector<name_value> headers, const std::string& given);

/// Whether this status means that the key is missing, unknown, or lacks the permission.
bool refuses_key(int status);

/// How a user gives a key.
inline constexpr const char* how_to_give_key =
    "set TWILL_API_KEY or OPENAI_API_KEY, or give --api-key KEY";

/// The message for the user about a reply that refuses the key: the server, the status, the message
/// of the reply, and how to give a key.
std::string key_advice(const serve_options& options, int status, const std::string& message);

} // namespace twill::bench
