// generation_fields: reads those fields of a generation request that have the same meaning in
// several of the APIs that twill serves.
//
// Thread-safe: the functions change only their arguments.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "actors/port/request.hpp"
#include "net/protocol/codec.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// Sets the model, the model's own sampling parameters, and the server's default for the number of
/// output tokens.
void set_defaults(const codec_context& context, actors::request& to);

/// Reads the sampling parameters, the options of the prompt, the priority and the format of the
/// output. The caller has called set_defaults() before. Refuses the fields that twill does not
/// support. The limit of output tokens may have any of the names `limits`, and must be at least
/// `least`.
void read_generation(fields& from, const codec_context& context,
                     std::initializer_list<std::string_view> limits, std::int32_t least,
                     actors::request& to);

} // namespace twill::net
