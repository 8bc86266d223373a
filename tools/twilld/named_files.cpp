#include "tools/twilld/named_files.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "models/model.hpp"
#include "models/open/model_place.hpp"
#include "tools/common/default_model.hpp"
#include "tools/common/hub/model_argument.hpp"
#include "tools/common/models_folder.hpp"
#include "tools/twilld/user.hpp"

namespace twill::tools {
namespace {

namespace fs = std::filesystem;

void check_readable(const char* key, const std::string& path, std::vector<std::string>& faults) {
  if (path.empty() || (fs::is_regular_file(path) && ::access(path.c_str(), R_OK) == 0)) return;
  const int why = errno;
  faults.push_back("`" + std::string(key) + "` must be a file that this user may read, got " +
                   path +
                   (fs::exists(path) && why != EACCES ? ", which is no file"
                                                      : std::string(": ") + std::strerror(why)));
}

void check_folder(const char* key, const std::string& path, std::vector<std::string>& faults) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  faults.push_back("`" + std::string(key) + "` must be a folder, got " + path);
}

std::string default_model() {
  std::string searched;
  if (const auto cached = default_model_path(); cached.ok()) {
    if (fs::exists(cached.value())) return cached.value();
    searched = cached.value();
  }
  for (const auto& folder : models_folders()) {
    const auto path = (folder / default_model_file).string();
    if (fs::exists(path)) return path;
    searched += (searched.empty() ? "" : " or ") + path;
  }
  throw std::runtime_error("`model.path` is empty and the default model is not at " + searched +
                           ": run `twill default-model` to fetch it");
}

std::string fault_of_path(const std::string& path, const std::string& chat_template) {
  const auto opened = models::open_model(path, chat_template);
  return opened.ok() ? std::string() : opened.detail();
}

/// Returns why the model cannot be served; empty when it can.
std::string fault_of_model(const std::string& path, const std::string& chat_template) {
  if (path.empty()) return fault_of_path(default_model(), chat_template);
  if (!hub::is_of_hub(path)) return fault_of_path(hub::local_model(path), chat_template);
  const auto model = hub::preview(hub::parse_reference(path),
                                  {nullptr, [](const std::string&) {}, [](auto, auto) {}});
  return model->in_words(fault_of_path(model->path(), chat_template));
}

void check_models(const config::options& options, std::vector<std::string>& faults) {
  const auto check = [&](const std::string& key, const std::string& path,
                         const std::string& chat_template) {
    try {
      const auto why = fault_of_model(path, chat_template);
      if (!why.empty()) faults.push_back("`" + key + "` cannot be served: " + why);
    } catch (const std::runtime_error& error) {
      faults.push_back(path.empty() ? error.what()
                                    : "`" + key + "` cannot be served: " + error.what());
    }
  };
  for (const auto& one : options.models)
    check("models." + one.key + ".path", one.model.path, one.model.chat_template);
  if (!options.models.empty()) return;
  check("model.path", options.model.path, options.model.chat_template);
}

/// Throws when the path does not exist, or is a folder without a model.
void check_model_place(const std::string& path) {
  const auto place = models::find_model(path);
  std::string why = place.ok() ? "" : place.detail();
  std::error_code error;
  if (place.ok() && place.value().kind != models::model_kind::dummy) {
    const bool is_folder = fs::is_directory(path, error);
    if (!fs::exists(path, error))
      why = path + ": " + (error ? error.message() : "No such file or directory");
    else if (is_folder && place.value().kind == models::model_kind::folder &&
             !fs::exists(fs::path(path) / "config.json", error) &&
             // a LoRA adapter; open_model() explains why it cannot be served
             !fs::exists(fs::path(path) / "adapter_config.json", error))
      why = path + ": the folder has neither config.json nor a file *.gguf";
  }
  if (!why.empty())
    throw std::runtime_error("`model.path` must be a GGUF file, a Hugging Face folder, hf:ORG/NAME "
                             "or dummy:PRESET, got " +
                             why);
}

} // namespace

void find_models(config::options& options) {
  for (const auto& one : options.models)
    if (hub::is_of_hub(one.model.path)) hub::parse_reference(one.model.path);
  if (!options.models.empty()) return;
  auto& path = options.model.path;
  if (path.empty()) {
    path = default_model();
  } else if (hub::is_of_hub(path)) {
    hub::parse_reference(path);
  } else {
    path = hub::local_model(path);
    check_model_place(path);
  }
}

std::vector<std::string> faults_of_named_files(const config::options& options) {
  std::vector<std::string> faults;
  check_models(options, faults);
  check_readable("server.tls_certificate", options.server.tls_certificate, faults);
  check_readable("server.tls_key", options.server.tls_key, faults);
  check_folder("offload.dir", options.offload.dir, faults);
  // Only root can become another user. Without root's rights, for example when a user only checks a
  // configuration, the user is not looked up.
  if (!options.server.user.empty() && ::geteuid() == 0) {
    try {
      find_user(options.server.user);
    } catch (const std::runtime_error& error) {
      faults.push_back(error.what());
    }
  }
  return faults;
}

void check_address_file(const std::string& path) {
  if (path.empty()) return;
  const auto refuse = [&](const std::string& why) {
    throw std::runtime_error("`--address-file` must be a file that this user can write, got " +
                             path + ": " + why);
  };
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) refuse("it is a folder");
  // The address file is written under another name and renamed, so the folder must be writable.
  const std::string trial = path + ".tmp";
  errno = 0;
  const bool written = std::ofstream(trial).put('\n').flush().good();
  const int why = errno;
  if (!written) refuse(why != 0 ? std::strerror(why) : "it cannot be written");
  fs::remove(trial, ignored);
}

} // namespace twill::tools
