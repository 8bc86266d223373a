// reference: the texts with which a user can name a model of Hugging Face's hub.
//
//   ORG/NAME  hf:ORG/NAME  hf.co/ORG/NAME  https://huggingface.co/ORG/NAME
//   ...@REVISION                 a branch, a tag or a commit; the default is "main"
//   ...:Q4_K_M  ...:FILE.gguf    one of several GGUF models, by its quantisation or its file
//   https://huggingface.co/ORG/NAME/blob/REVISION/FILE.gguf, also /resolve/ and /tree/REVISION
//
// All functions are pure, except that HF_ENDPOINT may change the hub's address. They throw
// client_error for a text that is meant as a reference but malformed.
#pragma once

#include <string>

namespace twill::tools::hub {

struct model_reference {
  std::string repository; ///< "ORG/NAME", or "NAME" for the oldest models
  std::string revision = "main";
  std::string file; ///< a path that ends in .gguf, or a quantisation; empty: the default choice of
                    ///< choose_files()

  bool names_a_file() const;
  /// The reference as "hf:ORG/NAME@REVISION:FILE", a form that parse_reference() accepts.
  std::string text() const;
};

/// Whether the text can only name a model of the hub: it begins with "hf:" or is an address of the
/// hub.
bool is_reference(const std::string& text);

/// Whether the text has the form ORG/NAME[@REVISION][:FILE]. Such a text could also be a path.
bool looks_like_id(const std::string& text);

/// Parses a text for which is_reference() or looks_like_id() is true.
model_reference parse_reference(const std::string& text);

/// Whether a path from the hub may be used below a local folder: it must be relative, valid UTF-8,
/// at most 1000 bytes long, and without "..", empty parts, backslashes and control characters.
bool is_safe_path(const std::string& path);

} // namespace twill::tools::hub
