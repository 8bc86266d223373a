// stored_api: by which protocol a stored response was asked, which its id tells. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace twill::net {

enum class stored_api { responses, chat, completions, stream };

/// By the beginning of the id, whatever the rest of it is; `responses` where it begins otherwise.
stored_api api_of(std::string_view id);
/// What ids of this kind begin with.
std::string_view id_prefix_of(stored_api api);
/// The path that they are asked at; a stored one is at "PATH/ID".
std::string_view path_of(stored_api api);
/// What is asked at a path; nothing where it is none of them.
std::optional<stored_api> api_at(std::string_view path);
/// How a client reads on where its connection broke, as the end of a sentence.
std::string how_to_read_on(const std::string& id);

} // namespace twill::net
