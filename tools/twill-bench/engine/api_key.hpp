// api_key: which key requests carry, and what to do when the server refuses it.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"

namespace twill::bench {

/// The headers with an `Authorization` that carries `given` (--api-key), else TWILL_API_KEY, else
/// OPENAI_API_KEY. A header of that name among `headers` wins. Throws std::invalid_argument for a
/// key that no header can carry.
std::vector<name_value> with_api_key(std::vector<name_value> headers, const std::string& given);

/// Whether a reply with this status says that the key is missing, unknown, or may not do this.
bool refuses_key(int status);

/// How a user gives a key.
inline constexpr const char* how_to_give_key =
    "set TWILL_API_KEY or OPENAI_API_KEY, or give --api-key KEY";

/// The message for the user about such a reply: the server, the status, its message, and how to
/// give a key.
std::string key_advice(const serve_options& options, int status, const std::string& message);

} // namespace twill::bench
