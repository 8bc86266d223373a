// The timeline's SVG image: well-formed, complete, and small however many spans there are.
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tools/twill/offload/timeline_svg.hpp"

using namespace twill;
using models::offload::offload_resource;
using models::offload::timeline_span;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++n;
  return n;
}

/// Tags nest and close, attributes are quoted, text holds no bare & or <.
bool well_formed(const std::string& xml) {
  std::vector<std::string> open;
  std::size_t at = xml.find("?>") + 2;
  while (at < xml.size()) {
    if (xml[at] == '&') {
      const auto end = xml.find(';', at);
      if (end == std::string::npos || end - at > 5) return false;
      at = end + 1;
    } else if (xml[at] != '<') {
      ++at;
    } else {
      const auto end = xml.find('>', at);
      if (end == std::string::npos) return false;
      const std::string tag = xml.substr(at + 1, end - at - 1);
      at = end + 1;
      if (count(tag, "\"") % 2 != 0 || tag.find('<') != std::string::npos) return false;
      if (tag.front() == '/') {
        if (open.empty() || open.back() != tag.substr(1)) return false;
        open.pop_back();
      } else if (tag.back() != '/') {
        open.push_back(tag.substr(0, tag.find(' ')));
      }
    }
  }
  return open.empty();
}

std::vector<timeline_span> many(std::size_t n) {
  std::vector<timeline_span> spans;
  for (std::size_t i = 0; i < n; ++i) {
    const double start = double(i) * 1e-3;
    spans.push_back({i % 3 == 0 ? offload_resource::h2d : offload_resource::device,
                     {0, std::int32_t(i % 12), std::int32_t(i % 7)},
                     start,
                     start + 0.8e-3});
  }
  return spans;
}

} // namespace

TEST_CASE("a timeline names its rows, bars and micro-batches") {
  const std::vector<timeline_span> spans{
      {offload_resource::disk_read, {0, 3, -1}, 0.0, 0.4},
      {offload_resource::h2d, {0, 3, -1}, 0.4, 0.5},
      {offload_resource::device, {2, 3, 1}, 0.5, 1.25},
  };
  const auto svg = tools::timeline_svg(spans, {"OPT-125M <zigzag> & \"friends\", simulated"});
  CHECK(well_formed(svg));
  CHECK(svg.find("OPT-125M &lt;zigzag&gt; &amp; &quot;friends&quot;, simulated") !=
        std::string::npos);
  for (const auto* row : {">disk read<", ">host to device<", ">device<", ">seconds<"})
    CHECK(count(svg, row) == 1);
  CHECK(count(svg, ">disk write<") == 0);
  CHECK(count(svg, "token 2, layer 3, batch 1, 0.5 to 1.25 s") == 1);
  CHECK(count(svg, "weights of layer 3, round 0") == 2);
}

TEST_CASE("thousands of tasks become at most a bar per pixel and row") {
  const auto svg = tools::timeline_svg(many(200000), {"many", 800});
  CHECK(well_formed(svg));
  CHECK(count(svg, "<title>") <= 2 * 801);
  CHECK(count(svg, "<title>") > 2 * 300);
  CHECK(svg.size() < 600000);
}

TEST_CASE("a long task among short ones keeps its own bar") {
  auto spans = many(10000); // ten seconds
  spans.push_back({offload_resource::device, {5, 6, 42}, 10.0, 11.0});
  const auto svg = tools::timeline_svg(spans, {"one long"});
  CHECK(count(svg, "token 5, layer 6, batch 42, 10 to 11 s") == 1);
}

TEST_CASE("a timeline without spans is still a valid image") {
  const auto svg = tools::timeline_svg({}, {"\x01nothing"});
  CHECK(well_formed(svg));
  CHECK(svg.find(">nothing<") != std::string::npos);
}
