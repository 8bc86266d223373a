// kv_fingerprint: the text that names all that the bytes of a KV block depend on beside its tokens:
// the model's files, the program, the layout, the types, the device and its instruction set.
//
// Any thread. Of each file it holds the name, size and time, and a checksum of samples from all
// over it, so that a model that was exchanged is another model. Files are those that the model
// mapped when it was opened, not what now stands at their paths. Where somebody has written into
// one of them since, nobody knows which bytes were loaded, and the text is like no other.
#pragma once

#include <string>

#include "gpu/device.hpp"
#include "models/decoder/decoder.hpp"
#include "models/model.hpp"

namespace twill::actors {

std::string kv_fingerprint(const models::model& model, const models::decoder_options& options,
                           const gpu::device_info& device);

} // namespace twill::actors
