// pull: fetches a complete model from Hugging Face's hub into the cache, provided that twill can
// serve it.
//
// It first fetches the list of files, then configuration and tokenizer, then the headers of the
// weight files. A model that fails a check at one of these stages is refused before its weights are
// fetched. Files that are already in the cache are not fetched again. When the hub cannot be
// reached, or HF_HUB_OFFLINE is set, the model in the cache is used unchecked.
//
// Calls block. Any number of threads and processes may pull at the same time. Calls throw
// client_error, and stopped_error when the `stopped` callback returned true; bytes fetched before
// that are kept for the next attempt.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/common/hub/reference.hpp"
#include "tools/common/hub/stopped.hpp"

namespace twill::tools::hub {

struct pulled_model {
  std::string path;   ///< the folder or the (first) GGUF file, as open_model() takes it
  std::string sha256; ///< as the hub gives it for a model in a single GGUF file, otherwise empty
};

struct pull_events {
  std::function<bool()> stopped;                    ///< polled a few times per second; true ends
                                                    ///< the call; may be null
  std::function<void(const std::string& line)> say; ///< writes a line for the user
  /// Reports the bytes that this pull has fetched and must fetch; bytes that were in the cache
  /// before do not count.
  std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)> progress;
  /// Called with the model's path and hash before its weights are fetched. May throw to refuse the
  /// model. May be null.
  std::function<void(const pulled_model&)> chosen = {};
  /// Called once before the first file is fetched; not called when all files are in the cache. May
  /// be null.
  std::function<void()> begins = {};
};

pulled_model pull(const model_reference& named, const pull_events& events);

/// Returns the model if the cache has all of it. Makes no request to the hub.
std::optional<pulled_model> find_in_cache(const model_reference& named);

/// A model whose headers can be read, even if its weights have not been fetched.
class model_preview {
public:
  virtual ~model_preview() = default;
  virtual std::string path() const = 0;
  virtual std::string in_words(const std::string& message) const = 0;
};

/// Returns the model that pull() would give. When the cache has the complete model, the result
/// refers to the cache. Otherwise the headers of its weight files are fetched into a temporary
/// folder, which is removed when the result is destroyed.
std::unique_ptr<model_preview> preview(const model_reference& named, const pull_events& events);

} // namespace twill::tools::hub
