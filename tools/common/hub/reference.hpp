// reference: how a user names a model of Hugging Face's hub.
//
//   ORG/NAME  hf:ORG/NAME  hf.co/ORG/NAME  https://huggingface.co/ORG/NAME
//   ...@REVISION                 a branch, a tag or a commit; else "main"
//   ...:Q4_K_M  ...:FILE.gguf    one GGUF model of several, by its quantisation or its file
//   https://huggingface.co/ORG/NAME/blob/REVISION/FILE.gguf, also /resolve/ and /tree/REVISION
//
// Pure, but for the address of the hub, which HF_ENDPOINT may change. Throws client_error for a
// text that is meant as a reference and breaks a rule.
#pragma once

#include <string>

namespace twill::tools::hub {

struct model_reference {
  std::string repository; ///< "ORG/NAME", or "NAME" for the oldest models
  std::string revision = "main";
  std::string file; ///< a path that ends in .gguf, or a quantisation; empty: what is there

  bool names_a_file() const;
  /// "hf:ORG/NAME@REVISION:FILE", which parse_reference() takes.
  std::string text() const;
};

/// Whether the text can only mean the hub: it begins with "hf:", or is an address of the hub.
bool is_reference(const std::string& text);

/// Whether the text could also be a path, and has the form ORG/NAME[@REVISION][:FILE].
bool looks_like_id(const std::string& text);

/// The reference that a text of one of the two kinds is.
model_reference parse_reference(const std::string& text);

/// Whether a path of the hub may become one below a folder: relative, without "..", empty parts,
/// backslashes and control characters, in UTF-8 and of at most 1000 bytes.
bool is_safe_path(const std::string& path);

} // namespace twill::tools::hub
