#include "tools/common/hub/model_argument.hpp"

#include <filesystem>
#include <system_error>

#include "models/synth/dummy.hpp"
#include "tools/common/endpoint.hpp"
#include "tools/common/home_path.hpp"

namespace twill::tools::hub {
namespace {

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

/// For a copied model name or address, throws an error that says what to write instead.
void check_path(const std::string& path) {
  if (path.empty() || models::synth::is_dummy(path) || is_there(path)) return;
  if (is_reference(path) || looks_like_id(path)) {
    const auto named = parse_reference(path).text();
    throw client_error(path +
                       ": no such file or folder; for the model of that name on Hugging "
                       "Face's hub write " +
                       named + ": `twilld --model " + named +
                       "` fetches and serves it, `twill models pull " + named + "` fetches it");
  }
  if (path.starts_with("https://") || path.starts_with("http://"))
    throw client_error(path +
                       ": a model must be a file, a folder or hf:ORG/NAME; `twill models pull " +
                       path + "` fetches a GGUF file from an address");
}

} // namespace

bool is_of_hub(const std::string& given) {
  return given.starts_with("hf:");
}

std::string local_model(const std::string& given) {
  if (is_of_hub(given)) {
    const auto named = parse_reference(given);
    const auto found = find_in_cache(named);
    if (!found)
      throw client_error(named.text() +
                         " is not in the cache of the hub, or not all of it: `twill "
                         "models pull " +
                         named.text() + "` fetches it");
    return found->path;
  }
  auto path = expand_home(given);
  check_path(path);
  return path;
}

std::string fetched_model(const std::string& given, const pull_events& events) {
  if (is_of_hub(given)) return pull(parse_reference(given), events).path;
  return local_model(given);
}

} // namespace twill::tools::hub
