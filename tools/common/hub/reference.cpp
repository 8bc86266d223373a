#include "tools/common/hub/reference.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "models/text/detokenizer.hpp"
#include "tools/common/endpoint.hpp"
#include "tools/common/hub/settings.hpp"
#include "tools/common/hub/url.hpp"

namespace twill::tools::hub {
namespace {

constexpr std::size_t most_id_bytes = 96; // the limit in huggingface_hub's validate_repo_id()
constexpr std::size_t most_revision_bytes = 200;

bool is_word(unsigned char c) {
  return c < 0x80 && (std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-');
}

bool ends_as_gguf(std::string_view path) {
  if (path.size() <= 5) return false;
  std::string end(path.substr(path.size() - 5));
  std::transform(end.begin(), end.end(), end.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return end == ".gguf";
}

/// Whether the text is a valid name by the hub's rules.
bool is_name(std::string_view text) {
  const auto edge = [](char c) { return c == '-' || c == '.'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_word) && !edge(text.front()) &&
         !edge(text.back()) && text.find("..") == text.npos && text.find("--") == text.npos &&
         !text.ends_with(".git");
}

bool is_repository(std::string_view text) {
  const auto slash = text.find('/');
  if (text.size() > most_id_bytes) return false;
  if (slash == text.npos) return is_name(text);
  return is_name(text.substr(0, slash)) && is_name(text.substr(slash + 1));
}

bool is_revision(const std::string& text) {
  return !text.empty() && text.size() <= most_revision_bytes && is_safe_path(text) &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return is_word(c) || c == '/'; });
}

bool is_file(const std::string& text) {
  if (ends_as_gguf(text)) return is_safe_path(text);
  return text.size() <= 40 && std::all_of(text.begin(), text.end(), is_word);
}

[[noreturn]] void refuse_name(const std::string& given, const std::string& rule) {
  throw client_error("a model of the hub must be named as hf:ORG/NAME, hf:ORG/NAME:Q4_K_M or "
                     "hf:ORG/NAME:FILE.gguf, with @REVISION behind NAME where wanted: " +
                     rule + ", got " + given);
}

void check(const model_reference& r, const std::string& given) {
  if (!is_repository(r.repository))
    refuse_name(given, "ORG and NAME must be words of letters, digits, '-', '_' and '.'");
  if (!is_revision(r.revision)) refuse_name(given, "REVISION must be a branch, a tag or a commit");
  if (!is_file(r.file))
    refuse_name(given,
                "what stands behind ':' must be the path of a .gguf file in the repository, or a "
                "quantisation such as Q4_K_M");
}

/// Parses "ORG/NAME@REVISION:FILE".
model_reference split(const std::string& text) {
  model_reference r;
  const auto colon = std::min(text.find(':'), text.size());
  std::string id = text.substr(0, colon);
  if (colon < text.size()) r.file = text.substr(colon + 1);
  if (r.file == "latest") r.file.clear(); // Ollama's default tag, which names no particular file
  if (const auto at = id.find('@'); at != id.npos) {
    r.revision = id.substr(at + 1);
    id.erase(at);
  }
  while (id.ends_with('/'))
    id.pop_back();
  r.repository = std::move(id);
  return r;
}

/// Parses the path of a page of the hub: "ORG/NAME", "ORG/NAME/blob/REVISION/FILE", ...
model_reference split_page(const std::string& given, std::string_view page) {
  page = page.substr(0, page.find_first_of("?#"));
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= page.size();) {
    const auto end = std::min(page.find('/', begin), page.size());
    // Slashes within a revision are percent-encoded, so the path is split first and its parts are
    // decoded one by one.
    auto part = percent_decoded(page.substr(begin, end - begin));
    if (!part) refuse_name(given, "an address must be encoded rightly");
    if (!part->empty()) parts.push_back(std::move(*part));
    begin = end + 1;
  }
  const auto is_view = [](const std::string& word) {
    return word == "blob" || word == "resolve" || word == "tree" || word == "raw";
  };
  const auto view = std::find_if(parts.begin(), parts.end(), is_view);
  std::string id;
  for (auto part = parts.begin(); part != view; ++part)
    id += (id.empty() ? "" : "/") + *part;
  model_reference r = split(id);
  if (view == parts.end()) return r;
  if (parts.end() - view < 2)
    refuse_name(given, "an address with /" + *view + "/ must name a revision");
  r.revision = view[1];
  for (auto part = view + 2; part != parts.end(); ++part)
    r.file += (r.file.empty() ? "" : "/") + *part;
  if (!r.file.empty() && !ends_as_gguf(r.file))
    refuse_name(given,
                "an address of a file must be that of a .gguf file; name the whole repository for "
                "a model in several files");
  return r;
}

/// Stores in `page` what follows the hub's host name in an address. Returns false for texts that
/// are no address of the hub. Addresses without "https://" are accepted, because some browsers copy
/// them so.
bool behind_hub(const std::string& text, std::string& page) {
  std::vector<std::string> hubs{"https://huggingface.co/",
                                "https://hf.co/",
                                "https://www.huggingface.co/",
                                "http://huggingface.co/",
                                "http://hf.co/",
                                "huggingface.co/",
                                "hf.co/",
                                "hf://"};
  try {
    hubs.push_back(endpoint_of_environment().text() + "/");
  } catch (const client_error&) {
    // An invalid HF_ENDPOINT is reported when the hub is contacted.
  }
  for (const auto& hub : hubs)
    if (text.starts_with(hub)) {
      page = text.substr(hub.size());
      return true;
    }
  return false;
}

} // namespace

bool model_reference::names_a_file() const {
  return ends_as_gguf(file);
}

std::string model_reference::text() const {
  return "hf:" + repository + (revision == "main" ? "" : "@" + revision) +
         (file.empty() ? "" : ":" + file);
}

bool is_reference(const std::string& text) {
  std::string page;
  return text.starts_with("hf:") || behind_hub(text, page);
}

bool looks_like_id(const std::string& text) {
  const auto r = split(text);
  return r.repository.find('/') != r.repository.npos && !ends_as_gguf(r.repository) &&
         is_repository(r.repository) && is_revision(r.revision) && is_file(r.file);
}

model_reference parse_reference(const std::string& text) {
  std::string page;
  model_reference r = behind_hub(text, page)    ? split_page(text, page)
                      : text.starts_with("hf:") ? split(text.substr(3))
                                                : split(text);
  check(r, text);
  return r;
}

bool is_safe_path(const std::string& path) {
  if (path.empty() || path.size() > 1000 || path.front() == '/' || !models::is_utf8(path))
    return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    const std::string_view part = std::string_view(path).substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    begin = end + 1;
  }
  return std::none_of(path.begin(), path.end(), [](unsigned char c) {
    return c < 0x20 || c == 0x7f || c == '\\' || c == ':';
  });
}

} // namespace twill::tools::hub
