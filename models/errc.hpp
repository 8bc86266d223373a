// errc: the errors of models/. The detail of each failure names the file, field or tensor, the rule
// that it broke, and what was found.
#pragma once

#include <string>

#include "config/base/result.hpp"

namespace twill::models {

enum class errc {
  file_unreadable,  ///< the path cannot be opened, mapped or read
  file_unwritable,  ///< a file or folder cannot be created or written: permissions, a full disk
  bad_format,       ///< the file contradicts its format (offset, count, length, type, string)
  unsupported,      ///< a valid file of a kind, family or version that twill does not run
  missing_tensor,   ///< a tensor that the family needs is not in the checkpoint
  bad_tensor,       ///< a tensor has another shape or element type than the family says
  missing_metadata, ///< a key that the family needs is absent
  bad_metadata,     ///< a key has an impossible value
  bad_template,     ///< a chat template does not parse
  template_failed,  ///< a chat template raised an error or broke a sandbox limit
  bad_token,        ///< a token id outside the vocabulary
  bad_text,         ///< text that is not valid UTF-8
  bad_option,       ///< an option, or two options together, break their rule
  out_of_memory,    ///< weights, KV or workspace do not fit the device budget
  device_failed,    ///< the device reported a failure while a model was loaded
};

template <class T>
using result = twill::result<T, errc>;
using failure = twill::failure<errc>;

/// The failure with `path` in front of its detail, unless the detail begins with it already.
inline failure in_file(const std::string& path, const failure& f) {
  return f.detail.starts_with(path) ? f : failure{f.code, path + ": " + f.detail};
}

} // namespace twill::models
