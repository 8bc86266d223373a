#include "models/synth/dummy.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "models/families/family.hpp"
#include "models/synth/configs.hpp"
#include "models/synth/tokenizer_files.hpp"
#include "models/text/tokenizer/folder_tokenizer.hpp"

namespace twill::models::synth {
namespace {

constexpr std::string_view prefix = "dummy:";

/// A temporary folder that only this process reads. The destructor removes the folder.
class private_folder {
public:
  static result<private_folder> create() {
    std::error_code error;
    const auto parent = std::filesystem::temp_directory_path(error);
    if (error) return failure{errc::file_unwritable, "no temporary folder: " + error.message()};
    std::string path = (parent / "twill-dummy-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr)
      return failure{errc::file_unwritable, path + ": cannot be created: " + std::strerror(errno)};
    return private_folder(std::move(path));
  }
  explicit private_folder(std::string path) : path_(std::move(path)) {}
  private_folder(private_folder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  private_folder& operator=(private_folder&&) = delete;
  ~private_folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

result<nothing> write_file(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out.fail())
    return failure{errc::file_unwritable, path + ": cannot be written: " + std::strerror(errno)};
  return nothing{};
}

result<std::shared_ptr<const tokenizer>> make_text_side(const recipe& r, const dummy_model& m) {
  auto folder = private_folder::create();
  if (!folder.ok()) return folder.error();
  const std::string& path = folder.value().path();
  for (const text_file& file : tokenizer_files(r))
    if (auto done = write_file(path + "/" + file.name, file.bytes); !done.ok()) return done.error();
  return make_folder_tokenizer({.path = path,
                                .hints = r.family->tokenizer,
                                .config = &m.config,
                                .tokenizer_config = &m.tokenizer_config,
                                .generation_config = &m.generation_config});
}

} // namespace

bool is_dummy(std::string_view path) {
  return path.starts_with(prefix);
}

result<recipe> parse_dummy(std::string_view path) {
  path.remove_prefix(std::min(path.size(), prefix.size()));
  return parse_recipe(path);
}

result<dummy_model> open_dummy(const std::string& path) {
  const auto parsed = parse_dummy(path);
  if (!parsed.ok()) return in_file(path, parsed.error());
  const recipe& r = parsed.value();
  dummy_model m;
  m.name = path.substr(prefix.size());
  if (r.packed != packing::none)
    m.quantization = (r.packed == packing::awq ? "AWQ-" : "GPTQ-") + std::to_string(r.bits);
  m.config = make_config(r);
  m.generation_config = make_generation_config(r);
  m.tokenizer_config = make_tokenizer_config(r);
  m.weights = make_dummy_weights(r);
  auto text = make_text_side(r, m);
  if (!text.ok()) return in_file(path, text.error());
  m.text = std::move(text).value();
  return m;
}

} // namespace twill::models::synth
