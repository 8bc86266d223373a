#include "models/model.hpp"

#include "models/open/model_place.hpp"
#include "models/open/openers.hpp"

namespace twill::models {

result<std::shared_ptr<const model>> open_model(const std::string& path,
                                                const std::string& template_path) {
  const auto place = find_model(path);
  if (!place.ok()) return place.error();
  switch (place.value().kind) {
  case model_kind::dummy:
    return open_dummy_model(path, template_path);
  case model_kind::gguf:
    return open_gguf_model(place.value().path, template_path);
  case model_kind::folder:
    break;
  }
  return open_folder_model(path, template_path);
}

} // namespace twill::models
