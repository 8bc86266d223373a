#include "net/http/multipart.hpp"

#include "net/http/header_words.hpp"

namespace twill::net {
namespace {

constexpr std::size_t max_parts = 64;

/// Returns a parameter of a header such as `form-data; name="file"; filename="a.jsonl"`.
std::string parameter(std::string_view header, std::string_view wanted) {
  std::size_t at = header.find(';');
  while (at != std::string_view::npos) {
    const auto equals = header.find('=', at);
    if (equals == std::string_view::npos) return {};
    const auto name = trimmed(header.substr(at + 1, equals - at - 1));
    std::string text;
    std::size_t end = equals + 1;
    if (end < header.size() && header[end] == '"') {
      for (++end; end < header.size() && header[end] != '"'; ++end) {
        if (header[end] == '\\' && end + 1 < header.size()) ++end;
        text += header[end];
      }
    } else {
      end = std::min(header.find(';', end), header.size());
      text = trimmed(header.substr(equals + 1, end - equals - 1));
    }
    if (is_same_word(name, wanted)) return text;
    at = header.find(';', end);
  }
  return {};
}

failure<api_error> malformed(const std::string& reason) {
  return fail({errc::invalid_field, "body must be multipart/form-data, got " + reason, ""});
}

/// Reads the name and the file name from a part's headers.
form_part describe_part(std::string_view head, std::string_view data) {
  form_part part;
  part.data = data;
  while (!head.empty()) {
    const auto end = std::min(head.find("\r\n"), head.size());
    const auto line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (!is_same_word(trimmed(line.substr(0, colon)), "content-disposition")) continue;
    part.name = parameter(line, "name");
    part.filename = parameter(line, "filename");
  }
  return part;
}

} // namespace

result<std::vector<form_part>> parse_multipart(std::string_view content_type,
                                               std::string_view body) {
  const auto type = trimmed(content_type.substr(0, content_type.find(';')));
  if (!is_same_word(type, "multipart/form-data"))
    return malformed(content_type.empty() ? "no Content-Type" : std::string(content_type));
  const std::string boundary = parameter(content_type, "boundary");
  if (boundary.empty() || boundary.size() > 70) return malformed("no usable boundary");

  const std::string mark = "--" + boundary;
  const std::string between = "\r\n" + mark;
  std::vector<form_part> parts;
  std::size_t at = body.starts_with(mark) ? 0 : body.find(between);
  if (at == std::string_view::npos) return malformed("a body without its boundary");
  at += body.starts_with(mark) ? mark.size() : between.size();
  for (;;) {
    if (body.substr(at, 2) == "--") return parts;
    if (parts.size() == max_parts) return malformed("more than 64 parts");
    const auto line_end = body.find("\r\n", at);
    if (line_end == std::string_view::npos) return malformed("a part without an end");
    const auto data_end = body.find(between, at);
    if (data_end == std::string_view::npos) return malformed("a part without an end");
    // An empty line separates the headers of a part from its data. In a part without headers it
    // comes first; if the part has no data either, the line end before the next boundary may be
    // this empty line.
    const auto head_end = body.substr(0, data_end + 2).find("\r\n\r\n", line_end);
    if (head_end == std::string_view::npos) return malformed("a part without its empty line");
    const auto data_begin = head_end + 4;
    const auto head_begin = std::min(line_end + 2, head_end);
    const auto size = data_end > data_begin ? data_end - data_begin : 0;
    parts.push_back(describe_part(body.substr(head_begin, head_end - head_begin),
                                  body.substr(data_begin, size)));
    at = data_end + between.size();
  }
}

const form_part* find_part(const std::vector<form_part>& parts, std::string_view name) {
  const auto found =
      std::find_if(parts.begin(), parts.end(), [&](const form_part& p) { return p.name == name; });
  return found == parts.end() ? nullptr : &*found;
}

} // namespace twill::net
