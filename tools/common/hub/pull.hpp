// pull: a model of the hub into the cache, whole and only if twill would serve it.
//
// The list of files comes first, then configuration and tokenizer, then the headers of the weights;
// a model that is refused by them costs no weights. What the cache has is not fetched again; where
// the hub cannot be reached, or HF_HUB_OFFLINE is set, the cache's model is taken as it is.
//
// Calls block; any number of threads and processes may pull at once. Throws client_error, and
// stopped_error when `stopped` said so; what was fetched then stays for the next try.
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
  std::string path;   ///< of the folder or the (first) GGUF file, for open_model()
  std::string sha256; ///< of a model in one GGUF file, as the hub tells it; else empty
};

struct pull_events {
  std::function<bool()> stopped;                    ///< asked a few times in a second; may be null
  std::function<void(const std::string& line)> say; ///< a line for the user
  /// Bytes of this pull, without those that were there.
  std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)> progress;
  /// Told what the model will be before its weights are fetched; may throw to refuse it. May be
  /// null.
  std::function<void(const pulled_model&)> chosen = {};
  /// Called once before the first file is fetched, and not where all of them are here. May be null.
  std::function<void()> begins = {};
};

pulled_model pull(const model_reference& named, const pull_events& events);

/// The model if all of it is in the cache, without asking the hub.
std::optional<pulled_model> find_in_cache(const model_reference& named);

/// A model that can be read as far as its headers go, whether or not its weights are here.
class model_preview {
public:
  virtual ~model_preview() = default;
  virtual std::string path() const = 0;
  virtual std::string in_words(const std::string& message) const = 0;
};

/// The model that pull() would give: what is in the cache where that is all of it, else one made of
/// headers from the hub, which live with the object.
std::unique_ptr<model_preview> preview(const model_reference& named, const pull_events& events);

} // namespace twill::tools::hub
