// kv_fingerprint: a text that identifies all that the bytes of a KV block depend on beside its
// tokens: the model's files, the program, the block's layout, the data types, the device and its
// instruction set.
//
// Any thread. For each file, the text holds its name, size and time, and a checksum of samples from
// all over the file, so that a replaced model gives another text. The files are those that the
// model mapped when it was opened, not those that are now at the same paths. If a file was written
// to since then, it is unknown which bytes were loaded, and the text is made unique.
#pragma once

#include <string>

#include "gpu/device.hpp"
#include "models/decoder/decoder.hpp"
#include "models/model.hpp"

namespace twill::actors {

std::string kv_fingerprint(const models::model& model, const models::decoder_options& options,
                           const gpu::device_info& device);

} // namespace twill::actors
