// file: a model in GGUF (version 2 or 3, little-endian), mapped and checked, as a checkpoint.
//
// A model may consist of several files. open() takes the path of any of them; the metadata are
// those of the first file. Immutable after open(); any thread may read. Everything that is handed
// out lies inside its file. Derived tensors (derived_tensor.hpp) are left out. Tensors of kinds
// that twill cannot read are listed; reading them fails with `unsupported`. Format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/gguf/metadata.hpp"
#include "models/checkpoint/gguf/part.hpp"
#include "models/checkpoint/mapped_file.hpp"

namespace twill::models::gguf {

class file final : public checkpoint {
public:
  /// Fails as part::open() does, and when a part is missing or contradicts the others.
  static result<std::shared_ptr<const file>> open(const std::string& path);

  std::uint32_t version() const { return version_; }
  const metadata& meta() const { return meta_; }
  /// In the order of the parts; one where the model is one file.
  const std::vector<std::shared_ptr<const mapped_file>>& files() const { return files_; }

  std::vector<tensor_info> tensors() const override;
  const tensor_info* find(std::string_view name) const override;
  result<gpu::weight_source> matrix(std::string_view name) const override;
  result<std::vector<float>> vector(std::string_view name) const override;
  void read_ahead(std::string_view name) const override;
  void release(std::string_view name) const override;

private:
  struct tensor {
    part_tensor part;
    const mapped_file* file = nullptr; ///< one of files_
  };

  file() = default;
  result<nothing> take(const part& p);
  result<nothing> check_count() const;
  void leave_out_derived();
  result<const part_tensor*> require(std::string_view name) const;

  std::vector<std::shared_ptr<const mapped_file>> files_;
  std::uint32_t version_ = 0;
  metadata meta_;
  std::vector<tensor> tensors_; ///< in the order of the parts
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

} // namespace twill::models::gguf
