// zip: reads the directory of a zip archive whose entries are stored and not compressed, as
// torch.save writes them (zip64 included).
//
// The functions are pure. Entries refer to the archive's bytes and lie inside them. The format is
// that of PKWARE APPNOTE 6.3.10, sections 4.3 to 4.5.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "models/errc.hpp"

namespace twill::models::pytorch {

struct zip_entry {
  std::string_view name;
  std::span<const std::byte> bytes;
};

/// Fails with bad_format when the bytes are not a zip or an entry exceeds them, and with
/// `unsupported` for compressed or encrypted entries. Memory is proportional to the archive's
/// directory.
result<std::vector<zip_entry>> read_zip(std::span<const std::byte> archive);

} // namespace twill::models::pytorch
