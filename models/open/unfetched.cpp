#include "models/open/unfetched.hpp"

#include <filesystem>
#include <system_error>
#include <vector>

#include "models/checkpoint/lfs_pointer.hpp"
#include "models/text/tokenizer/token_table.hpp"

namespace twill::models {

result<nothing> check_fetched(const std::string& folder) {
  namespace fs = std::filesystem;
  const fs::path root(folder);
  std::vector<fs::path> files = {root / "chat_template.jinja", root / "special_tokens_map.json"};
  std::error_code failed;
  for (fs::directory_iterator at(root / "additional_chat_templates", failed), end;
       !failed && at != end; at.increment(failed))
    if (at->path().extension() == ".jinja") files.push_back(at->path());
  for (const fs::path& file : files) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored) || fs::file_size(file, ignored) > longest_lfs_pointer)
      continue;
    auto text = read_text_file(file.string());
    if (!text.ok()) return text.error();
  }
  return nothing{};
}

} // namespace twill::models
