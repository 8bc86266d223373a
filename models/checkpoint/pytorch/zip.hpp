// Reads the directory of a zip archive whose entries are stored, not compressed (as torch.save
// writes them; zip64 included). Pure; entries refer to the archive's bytes and lie inside them.
// Format: PKWARE APPNOTE 6.3.10, sections 4.3 to 4.5.
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

/// bad_format for what is no zip or passes its end, `unsupported` for compressed or encrypted
/// entries. Memory is proportional to the archive's directory.
result<std::vector<zip_entry>> read_zip(std::span<const std::byte> archive);

} // namespace twill::models::pytorch
