#include "config/tenants.hpp"

#include <algorithm>
#include <map>

#include "config/detail/rules.hpp"
#include "config/detail/tenant_keys.hpp"

namespace twill::config {
namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  const auto word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

/// Reads the lines of one file, and keeps what is wrong with them.
class keys_reader {
public:
  keys_reader(std::vector<tenant_options> tenants, const std::string& file)
      : tenants_(std::move(tenants)), file_(file) {
    for (const auto& tenant : tenants_)
      for (const auto& digest : tenant.key_sha256)
        origins_.emplace(digest, "the configuration");
  }

  void read(std::string_view text) {
    for (line_ = 1; !text.empty(); ++line_) {
      const auto end = std::min(text.find('\n'), text.size());
      auto line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      line = line.substr(0, line.find('#'));
      const auto name = next_word(line);
      const auto key = next_word(line);
      if (name.empty()) continue;
      if (key.empty() || !next_word(line).empty())
        complain(1, "a line must be NAME sha256:HEX, or begin with #");
      else
        add(name, key, static_cast<std::size_t>(key.data() - name.data()) + 1);
    }
  }

  result<std::vector<tenant_options>, keys_file_errc> finish() {
    if (errors_.empty()) return std::move(tenants_);
    return failure{keys_file_errc::bad_lines, std::move(errors_)};
  }

private:
  void add(std::string_view name, std::string_view key, std::size_t column) {
    constexpr std::string_view prefix = "sha256:";
    if (!is_tenant_name(name))
      return complain(1, "the name must be " + tenant_name_words() + ", got " +
                             detail::quote(name.substr(0, 100)));
    if (!key.starts_with(prefix) || !detail::is_digest(key.substr(prefix.size())))
      return complain(column, "the key must be sha256: and 64 lower-case hex digits; `twill key "
                              "new NAME` prints such a line");
    std::string digest(key.substr(prefix.size()));
    const auto [known, fresh] = origins_.emplace(digest, at(column));
    if (!fresh)
      return complain(column, "the key stands at " + known->second + " already; remove one");
    auto found = std::find_if(tenants_.begin(), tenants_.end(),
                              [&](const tenant_options& one) { return one.name == name; });
    if (found == tenants_.end()) {
      tenants_.emplace_back().name = name;
      found = std::prev(tenants_.end());
    }
    found->key_sha256.push_back(std::move(digest));
  }

  std::string at(std::size_t column) const {
    return file_ + ":" + std::to_string(line_) + ":" + std::to_string(column);
  }
  /// Reports an error in a line of the keys file. The error does not repeat the key in the line,
  /// because the operator may have written the key in plain text.
  void complain(std::size_t column, const std::string& problem) {
    errors_ += (errors_.empty() ? "" : "\n") + at(column) + ": " + problem;
  }

  std::vector<tenant_options> tenants_;
  const std::string& file_;
  std::size_t line_ = 0;
  std::map<std::string, std::string, std::less<>> origins_; ///< digest -> where it stands
  std::string errors_;
};

} // namespace

bool is_tenant_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && !text.starts_with("key-") &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '.' || c == '-' || c == '_';
         });
}

std::string tenant_name_words() {
  return "1 to 64 letters, digits, dots, dashes or underscores that do not begin with \"key-\"";
}

const tenant_options* find_tenant(const std::vector<tenant_options>& tenants,
                                  std::string_view name) {
  const auto found = std::find_if(tenants.begin(), tenants.end(),
                                  [&](const tenant_options& one) { return one.name == name; });
  return found == tenants.end() ? nullptr : &*found;
}

bool may_use(const tenant_options* tenant, std::string_view model) {
  return tenant == nullptr || tenant->models.empty() ||
         std::find(tenant->models.begin(), tenant->models.end(), model) != tenant->models.end();
}

result<std::vector<tenant_options>, keys_file_errc>
add_keys(std::vector<tenant_options> tenants, const std::string& text, const std::string& file) {
  keys_reader reader(std::move(tenants), file);
  reader.read(text);
  return reader.finish();
}

} // namespace twill::config
