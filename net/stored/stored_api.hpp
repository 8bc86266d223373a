// stored_api: the HTTP endpoint at which a stored response was requested. The prefix of the
// response's id tells the endpoint. The functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace twill::net {

enum class stored_api { responses, chat, completions, stream };

/// Determines the endpoint from the prefix of the id alone. Returns `responses` if the prefix is
/// unknown.
stored_api api_of(std::string_view id);
/// The prefix of the ids of this endpoint.
std::string_view id_prefix_of(stored_api api);
/// The path of the endpoint; a stored response is found at "PATH/ID".
std::string_view path_of(stored_api api);
/// The endpoint at a path; nothing if the path is not one of these endpoints.
std::optional<stored_api> api_at(std::string_view path);
/// The end of a sentence that explains how a client can continue to read this response after its
/// connection broke.
std::string how_to_read_on(const std::string& id);

} // namespace twill::net
