// A multipart form that was written by the rules of RFC 2046 and RFC 7578 is read back unchanged. A
// form that was cut off is refused, and a damaged byte affects no part but its own.
#include "net/http/multipart.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;

namespace {

struct written_part {
  std::string name, filename, data;
  std::size_t begin = 0, head_end = 0, end = 0; ///< from its delimiter to the next delimiter's end
};

class form {
public:
  explicit form(const operations& sequence)
      : random_(sequence.empty() ? 1 : sequence[0].a * 31u + sequence[0].b) {
    choose_boundary();
    const operation how = sequence.empty() ? operation{} : sequence[0];
    preamble(how);
    for (const operation& op : sequence)
      add(op);
    begin_delimiter();
    body += "--";
    closed = body.size();
    if (!parts.empty()) parts.back().end = closed;
    if (how.c % 3 == 1) body += "\r\n";
    if (how.c % 3 == 2) body += "\r\nepilogue\r\n--" + boundary_ + "\r\n\r\nno part\r\n";
  }

  std::uint32_t below(std::uint32_t n) { return random_() % n; }

  /// The Content-Type header of the form, in random spelling.
  std::string content_type() {
    const char* types[] = {"multipart/form-data", "Multipart/Form-Data", "multipart/form-data "};
    std::string out = types[below(3)];
    if (below(3) == 0) out += "; charset=utf-8";
    if (below(4) == 0) out += "; note=\"a; boundary=no\"";
    const char* names[] = {"; boundary=", ";boundary=", "; Boundary=", ";  BOUNDARY ="};
    out += names[below(4)];
    // A boundary that consists of token characters needs no quotes.
    const bool quotes = boundary_.find_first_of("'()/:=?, ") != std::string::npos || below(2) == 0;
    out += quotes ? "\"" + boundary_ + "\"" : boundary_;
    if (below(4) == 0) out += "; charset=utf-8";
    return out;
  }

  std::string between() const { return "\r\n--" + boundary_; }

  std::string body;
  std::vector<written_part> parts;
  std::size_t closed = 0; ///< the offset after the "--" of the last delimiter

private:
  void choose_boundary() {
    const std::string plain = "abcXYZ0189-+_.", all = plain + "'()/:=?, ";
    const std::size_t lengths[] = {1, 2, 3, 30, 69, 70};
    const std::string& from = below(2) == 0 ? plain : all;
    for (std::size_t n = lengths[below(6)]; n > 0; --n)
      boundary_ += from[below(static_cast<std::uint32_t>(n == 1 ? plain.size() : from.size()))];
  }

  void preamble(const operation& how) {
    const std::string texts[] = {"", "", "for old readers", "--", "x--" + boundary_, "\r\n"};
    body = texts[how.b % 6];
    if (body.starts_with("--" + boundary_) || body.find(between()) != std::string::npos) body = "";
    if (how.b % 6 != 0) body += "\r\n";
  }

  /// The line end before a delimiter belongs to the delimiter. The first may have none.
  void begin_delimiter() {
    if (!parts.empty() && !shares_line_end_) body += "\r\n";
    shares_line_end_ = false;
    body += "--" + boundary_;
  }

  std::string any_bytes(std::size_t n) {
    std::string out(n, 0);
    for (char& c : out)
      c = static_cast<char>(random_());
    return out;
  }

  /// Data made of pieces that resemble the delimiter.
  std::string data_of(const operation& op) {
    const std::string mark = "--" + boundary_;
    std::string out;
    for (std::uint32_t i = 0; i < op.a % 7; ++i)
      switch (below(9)) {
      case 0:
        out += "\r\n" + mark.substr(0, mark.size() - 1);
        break;
      case 1:
        out += mark;
        break;
      case 2:
        out += "\r\n" + boundary_;
        break;
      case 3:
        out += "\n" + mark + "--";
        break;
      case 4:
        out += "\r\r\n";
        break;
      case 5:
        out += "\r\n\r\n";
        break;
      case 6:
        out += any_bytes(below(300));
        break;
      case 7:
        out += "Content-Disposition: form-data; name=\"no\"\r\n\r\n";
        break;
      default:
        out += std::string(below(3), '\r') + std::string(below(2), '-');
      }
    // A line of data that begins like the delimiter would end the part.
    if (("\r\n" + out + "\r\n").find(between()) != std::string::npos) return "-";
    return out;
  }

  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + "\"";
  }

  std::string name_of(std::uint32_t n) {
    const std::string names[] = {
        "file", "purpose", "a b",  "a\"b\\", "x; name=y", "filename=z", "\xc3\xa9",
        "=;=",  "\\\"",    "name", "a:b",    "",          "filename",   std::string(300, 'n')};
    return names[n % 14];
  }

  void add(const operation& op) {
    written_part one;
    // The line end before the part's delimiter may belong to the preamble, or to the previous head.
    one.begin = body.size();
    if (parts.empty() || shares_line_end_) one.begin -= std::min<std::size_t>(one.begin, 2);
    begin_delimiter();
    if (!parts.empty()) parts.back().end = body.size();
    body += std::string(below(4) == 0 ? 2 : 0, ' ') + "\r\n"; // blanks may pad a delimiter
    one.data = data_of(op);
    if (below(5) == 0) body += "Content-Type: text/plain; name=\"wrong\"\r\n";
    if (below(8) != 0) { // otherwise the part has no name
      one.name = name_of(op.b);
      std::string named =
          below(3) == 0 && is_token(one.name) ? "name=" + one.name : "name=" + quoted(one.name);
      if (below(3) == 0) named = "Name" + named.substr(4);
      std::string file;
      if (below(2) == 0) {
        one.filename = name_of(op.c);
        file = "filename=" + quoted(one.filename);
      }
      const char* heads[] = {"Content-Disposition: form-data", "content-disposition:form-data",
                             "CONTENT-DISPOSITION:  form-data"};
      body += heads[below(3)];
      if (below(4) == 0) body += "; filename*=UTF-8''no";
      const bool file_first = below(2) == 0;
      const std::string& first = file_first ? file : named;
      const std::string& second = file_first ? named : file;
      if (!first.empty()) body += (below(2) == 0 ? "; " : ";") + first;
      if (!second.empty()) body += (below(2) == 0 ? " ; " : "; ") + second;
      body += "\r\n";
    }
    if (below(4) == 0) body += "Content-Transfer-Encoding: binary\r\n";
    body += "\r\n";
    one.head_end = body.size();
    // If the part is empty, the line end after its head may also begin the next delimiter.
    shares_line_end_ = one.data.empty() && below(2) == 0;
    body += one.data;
    parts.push_back(std::move(one));
  }

  static bool is_token(const std::string& text) {
    return !text.empty() && text.find_first_of(" \"\\;=:\xc3") == std::string::npos;
  }

  std::minstd_rand random_;
  std::string boundary_;
  bool shares_line_end_ = false;
};

bool is_equal(const form_part& is, const written_part& expected) {
  return is.name == expected.name && is.filename == expected.filename && is.data == expected.data;
}

void demand_all(const net::result<std::vector<form_part>>& read, const form& made) {
  if (made.parts.size() > 64) return demand(!read.ok(), "a form of too many parts is refused");
  demand(read.ok(), "a form that was written by the rules is read");
  demand_equal(read.value().size(), made.parts.size(), "the parts of a form");
  for (std::size_t i = 0; i < made.parts.size(); ++i)
    demand(is_equal(read.value()[i], made.parts[i]), "a part is what was written");
  for (const auto& one : made.parts) {
    const auto first = std::find_if(made.parts.begin(), made.parts.end(),
                                    [&](const auto& p) { return p.name == one.name; });
    const auto* found = find_part(read.value(), one.name);
    demand(found != nullptr && is_equal(*found, *first), "the first part of a name");
  }
  demand(find_part(read.value(), "nobody's") == nullptr, "no part of another name");
}

void cut(const form& made, const std::string& type, std::size_t at) {
  const auto text = made.body.substr(0, at);
  const auto read = parse_multipart(type, text);
  if (at >= made.closed)
    demand_all(read, made);
  else
    demand(!read.ok(), "a form that was cut is refused");
}

/// A part is read unchanged unless the changed byte is in it, its delimiter or the next one.
void damage(form& made, const std::string& type, std::size_t at) {
  const char before = made.body[at];
  const char frequent[] = {'\r', '\n', '-', ':', '"', ';', '\\', ' '};
  const char to = made.below(2) == 0 ? frequent[made.below(8)] : static_cast<char>(made.below(256));
  made.body[at] = to;
  const auto read = parse_multipart(type, made.body);
  if (read.ok()) {
    std::size_t next = 0;
    for (const written_part& one : made.parts) {
      if (at >= made.closed) break;
      const bool in_data = at >= one.head_end && at < one.head_end + one.data.size();
      written_part expected = one;
      if (in_data) expected.data[at - one.head_end] = to;
      const bool splits =
          ("\r\n" + expected.data + "\r\n").find(made.between()) != std::string::npos;
      if (in_data && splits) break; // the change may have made the last delimiter
      if (at >= one.begin && at < one.end && !in_data) continue;
      while (next < read.value().size() && !is_equal(read.value()[next], expected))
        ++next;
      demand(next < read.value().size(), "damage elsewhere leaves a part as it is, " +
                                             std::to_string(at) + " of: " + made.body);
      ++next;
    }
    demand(read.value().size() <= made.parts.size() + 1, "no parts arise");
    if (at >= made.closed) demand_all(read, made);
  } else {
    const bool data = std::any_of(made.parts.begin(), made.parts.end(), [&](const auto& one) {
      return at >= one.head_end && at < one.head_end + one.data.size();
    });
    demand(made.parts.size() > 64 || at < made.closed,
           "what follows the last delimiter is not read");
    // If the change made a delimiter within data, the form may be refused.
    if (data && made.parts.size() <= 64) {
      std::size_t n = 0;
      for (std::size_t p = made.body.find(made.between()); p != std::string::npos;
           p = made.body.find(made.between(), p + 1))
        ++n;
      demand(n > made.parts.size(), "damage of data is no fault of the form");
    }
  }
  made.body[at] = before;
}

} // namespace

TEST_CASE("Forms are read back as they were written, and damage stays where it is") {
  CHECK(first_failure({.cases = 5000, .long_cases = 150'000, .most_operations = 12},
                      [](const operations& sequence) {
                        form made(sequence);
                        const auto type = made.content_type();
                        demand_all(parse_multipart(type, made.body), made);
                        const auto size = static_cast<std::uint32_t>(made.body.size());
                        for (int i = 0; i < 12; ++i)
                          cut(made, type, made.below(size + 1));
                        for (std::size_t at = made.closed - 3; at <= made.closed; ++at)
                          cut(made, type, at);
                        for (int i = 0; i < 12; ++i)
                          damage(made, type, made.below(size));
                      }) == "");
}

TEST_CASE("A form has at most 64 parts, and a boundary of 1 to 70 bytes") {
  for (const std::size_t n : {63, 64, 65}) {
    form made(operations(n, operation{0, 1, 0, 0}));
    demand_all(parse_multipart(made.content_type(), made.body), made);
  }
  for (const std::size_t n : {0, 1, 70, 71}) {
    const std::string boundary(n, 'b');
    const auto body = "--" + boundary + "\r\n\r\nx\r\n--" + boundary + "--";
    CHECK(parse_multipart("multipart/form-data; boundary=\"" + boundary + "\"", body).ok() ==
          (n >= 1 && n <= 70));
  }
  for (const std::string type : {"", "multipart/form-data", "multipart/mixed; boundary=b",
                                 "multipart/form-datas; boundary=b", "text/plain; boundary=b",
                                 "multipart/form-data; boundaries=b"})
    CHECK(!parse_multipart(type, "--b\r\n\r\nx\r\n--b--").ok());
  // A part needs an empty line of its own after its head, even after an empty head.
  for (const std::string head : {"", "a", "\r\na: b", "\r\n"})
    CHECK(parse_multipart("multipart/form-data; boundary=b",
                          "--b" + head + "\r\n--b\r\n\r\nx\r\n--b--")
              .ok() == (head == "\r\n"));
}
