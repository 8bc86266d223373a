// zip_writer: writes a ZIP archive of uncompressed entries in one pass (APPNOTE 6.3, ZIP64 where
// needed).
//
// Only one thread at a time may use an object. The sizes of entries must be known in advance; an
// entry's checksum is written into its header once the entry is complete. The data of each entry
// starts at a multiple of 64 bytes, as in files of torch.save.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/twill-synth/output_files.hpp"

namespace twill::synth {

class zip_writer {
public:
  explicit zip_writer(output_file& out) : out_(&out) {}

  result<nothing> begin(const std::string& name, std::int64_t bytes);
  result<nothing> write(std::span<const std::byte> bytes);
  result<nothing> end();
  result<nothing> whole(const std::string& name, std::string_view bytes);
  /// Writes the central directory, which completes the archive.
  result<nothing> finish();

private:
  struct entry {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;
    std::uint32_t checksum = 0;
  };

  output_file* out_;
  std::vector<entry> entries_;
};

} // namespace twill::synth
