#include "models/text/template_sources.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "config/base/read_file.hpp"
#include "models/checkpoint/gguf/metadata.hpp"
#include "models/checkpoint/json.hpp"

namespace twill::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t max_template_bytes = std::int64_t{1} << 20;
constexpr std::int64_t max_json_file_bytes = std::int64_t{4} << 20;
constexpr std::size_t max_templates = 64;

/// Collects templates. If two have the same name, the later one replaces the earlier one.
class gatherer {
public:
  void add(const std::string& name, std::string source) {
    if (source.empty()) return;
    if (static_cast<std::int64_t>(source.size()) > max_template_bytes)
      return fault("the chat template \"" + name + "\" must be at most " +
                   std::to_string(max_template_bytes) + " bytes, got " +
                   std::to_string(source.size()));
    if (name == default_template_name) {
      out.main = std::move(source);
      return;
    }
    const auto known = std::find_if(out.others.begin(), out.others.end(),
                                    [&](const auto& other) { return other.first == name; });
    if (known != out.others.end())
      known->second = std::move(source);
    else if (out.others.size() < max_templates)
      out.others.emplace_back(name, std::move(source));
    else
      fault("a model must have at most " + std::to_string(max_templates) +
            " chat templates, so \"" + name + "\" is left out");
  }

  void add_file(const std::string& name, const fs::path& path) {
    auto source = read_file(path.string(), max_template_bytes);
    if (source.ok())
      add(name, std::move(source).value());
    else
      fault(source.detail());
  }

  /// Adds `given`, the value of `chat_template` in a JSON file. `where` names the file in messages.
  void add_value(const value& given, const std::string& where) {
    if (given.is_null()) return;
    if (const auto* source = given.as_string()) return add(default_template_name, *source);
    if (const auto* object = given.as_object()) {
      for (const auto& [name, source] : *object)
        add_named(value(name), source, where);
      return;
    }
    if (given.as_list() == nullptr)
      return fault(where + ": `chat_template` must be a text or a list of {name, template}");
    for (const value& entry : *given.as_list()) {
      const value* name = entry.find("name");
      const value* source = entry.find("template");
      if (name == nullptr || source == nullptr)
        fault(where + ": each entry of `chat_template` must have `name` and `template`");
      else
        add_named(*name, *source, where);
    }
  }

  void fault(std::string why) {
    if (out.faults.size() < max_templates) out.faults.push_back(std::move(why));
  }

  template_sources out;

private:
  void add_named(const value& name, const value& source, const std::string& where) {
    if (name.as_string() == nullptr || source.as_string() == nullptr)
      return fault(where + ": names and templates in `chat_template` must be texts");
    add(*name.as_string(), *source.as_string());
  }
};

/// Returns the template files in the folder additional_chat_templates, sorted by name.
std::vector<fs::path> additional_files(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder / "additional_chat_templates", failed), end;
       !failed && at != end; at.increment(failed))
    if (at->path().extension() == ".jinja") found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

} // namespace

template_sources folder_template_sources(const std::string& folder, const value* tokenizer_config) {
  const fs::path path(folder);
  std::error_code ignored;
  gatherer files;
  if (fs::exists(path / "chat_template.jinja", ignored))
    files.add_file(default_template_name, path / "chat_template.jinja");
  std::vector<fs::path> more = additional_files(path);
  if (more.size() > max_templates) {
    files.fault("additional_chat_templates must hold at most " + std::to_string(max_templates) +
                " templates, got " + std::to_string(more.size()));
    more.resize(max_templates);
  }
  for (const fs::path& file : more)
    files.add_file(file.stem().string(), file);
  if (!files.out.main.empty()) return std::move(files.out);

  gatherer configured;
  if (tokenizer_config != nullptr)
    if (const value* given = tokenizer_config->find("chat_template"))
      configured.add_value(*given, "tokenizer_config.json");
  if (configured.out.empty() && fs::exists(path / "chat_template.json", ignored)) {
    const auto legacy = read_json_file((path / "chat_template.json").string(), max_json_file_bytes);
    if (!legacy.ok())
      configured.fault(legacy.detail());
    else if (const value* given = legacy.value().find("chat_template"))
      configured.add_value(*given, "chat_template.json");
  }
  // A template in a file of its own replaces a template of the same name in a JSON file.
  for (auto& [name, source] : files.out.others)
    configured.add(name, std::move(source));
  for (std::string& why : files.out.faults)
    configured.fault(std::move(why));
  return std::move(configured.out);
}

template_sources gguf_template_sources(const gguf::metadata& meta) {
  constexpr std::string_view key = "tokenizer.chat_template";
  gatherer found;
  if (const auto* source = meta.find<std::string>(key)) found.add(default_template_name, *source);
  for (auto at = meta.entries.lower_bound(std::string(key) + ".");
       at != meta.entries.end() && at->first.starts_with(std::string(key) + "."); ++at) {
    const std::string name = at->first.substr(key.size() + 1);
    const auto* source = std::get_if<std::string>(&at->second);
    if (source == nullptr || name.empty())
      found.fault("`" + at->first + "` must be a text with the template's name in its key");
    else
      found.add(name, *source);
  }
  return std::move(found.out);
}

} // namespace twill::models
