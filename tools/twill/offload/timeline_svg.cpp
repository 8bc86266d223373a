#include "tools/twill/offload/timeline_svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>
#include <vector>

namespace twill::tools {
namespace {

using models::offload::timeline_span;

constexpr int left = 120, top = 56, row_height = 34, bar_height = 26, right = 24;
constexpr int axis_height = 40, legend_height = 28, legend_step = 76;
constexpr std::size_t most_in_legend = 16;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default: // XML 1.0 does not allow other control characters
      if (static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n') out += c;
    }
  return out;
}

std::string number(double x) {
  char text[48];
  std::snprintf(text, sizeof text, "%.7g", x);
  return text;
}

std::string pixels(double x) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f", x);
  return text;
}

/// The colour of a micro-batch. Hues of successive micro-batches differ by the golden angle, so
/// that neighbours are easy to tell apart.
std::string colour_of(std::int32_t batch) {
  if (batch < 0) return "#8a8f98";
  const int hue = static_cast<int>(std::fmod(batch * 137.508 + 210, 360));
  const int light = 44 + batch % 3 * 9;
  return "hsl(" + std::to_string(hue) + ",65%," + std::to_string(light) + "%)";
}

std::string text_at(double x, double y, const std::string& attributes, const std::string& text) {
  return "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\"" + attributes + ">" +
         escaped(text) + "</text>\n";
}

/// A bar of the chart, which shows one span or several merged ones.
struct bar {
  double start_s = 0;
  double end_s = 0;
  double busy_s = 0;
  double longest_s = 0;
  timeline_span shown; ///< the longest of the merged spans
  std::size_t count = 0;

  void take(const timeline_span& span) {
    const double seconds = span.end_s - span.start_s;
    if (count == 0) start_s = span.start_s;
    end_s = std::max(end_s, span.end_s);
    busy_s += seconds;
    if (count == 0 || seconds > longest_s) {
      longest_s = seconds;
      shown = span;
    }
    ++count;
  }
};

/// The bars of one resource in order of time. Spans that fall on the same pixel are merged.
std::vector<bar> merged(std::vector<timeline_span> spans, double pixel_s) {
  std::sort(spans.begin(), spans.end(),
            [](const auto& a, const auto& b) { return a.start_s < b.start_s; });
  std::vector<bar> out;
  for (const timeline_span& span : spans) {
    const bool narrow = span.end_s - span.start_s < pixel_s;
    const bool joins = narrow && !out.empty() && out.back().longest_s < pixel_s &&
                       span.end_s - out.back().start_s <= pixel_s;
    if (!joins) out.emplace_back();
    out.back().take(span);
  }
  return out;
}

std::string title_of(const bar& b) {
  if (b.count > 1)
    return std::to_string(b.count) + " tasks, " + number(b.start_s) + " to " + number(b.end_s) +
           " s";
  const auto& at = b.shown.at;
  const std::string what =
      at.batch < 0
          ? "weights of layer " + std::to_string(at.layer) + ", round " + std::to_string(at.token)
          : "token " + std::to_string(at.token) + ", layer " + std::to_string(at.layer) +
                ", batch " + std::to_string(at.batch);
  return what + ", " + number(b.start_s) + " to " + number(b.end_s) + " s";
}

class drawing {
public:
  drawing(std::span<const timeline_span> spans, const timeline_layout& layout)
      : layout_(layout), width_(std::max(layout.plot_width, 100)) {
    for (const timeline_span& span : spans) {
      rows_[static_cast<std::size_t>(span.resource)].push_back(span);
      end_s_ = std::max(end_s_, span.end_s);
      batches_.insert(std::max(span.at.batch, -1));
    }
    for (const auto& row : rows_)
      n_rows_ += row.empty() ? 0 : 1;
    if (end_s_ <= 0) end_s_ = 1;
  }

  std::string draw() {
    const int plot_height = n_rows_ * row_height;
    const int width = left + width_ + right;
    const int height = top + plot_height + axis_height + legend_height;
    const std::string size = std::to_string(width) + "\" height=\"" + std::to_string(height);
    out_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
           "width=\"" +
           size +
           "\" font-family=\"sans-serif\" font-size=\"12\">\n"
           "<rect width=\"" +
           size + "\" fill=\"white\"/>\n";
    out_ += text_at(left, 28, " font-size=\"15\"", layout_.title);
    draw_axis(plot_height);
    draw_rows();
    draw_legend(top + plot_height + axis_height);
    return std::move(out_) + "</svg>\n";
  }

private:
  double x_of(double seconds) const { return left + seconds / end_s_ * width_; }

  void draw_axis(int plot_height) {
    const double rough = end_s_ / 10;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double times : {2.0, 5.0, 10.0})
      if (step < rough) step = power * times;
    for (int i = 0; i * step <= end_s_ * (1 + 1e-9); ++i) {
      const std::string x = pixels(x_of(i * step));
      out_ += "<line x1=\"" + x + "\" y1=\"" + std::to_string(top) + "\" x2=\"" + x + "\" y2=\"" +
              std::to_string(top + plot_height) + "\" stroke=\"#dddddd\"/>\n";
      out_ += text_at(x_of(i * step), top + plot_height + 16, " text-anchor=\"middle\"",
                      number(i * step));
    }
    out_ +=
        text_at(left + width_ / 2.0, top + plot_height + 32, " text-anchor=\"middle\"", "seconds");
  }

  void draw_rows() {
    int y = top;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (rows_[r].empty()) continue;
      out_ += text_at(left - 8, y + bar_height / 2 + 6, " text-anchor=\"end\"",
                      name_of(static_cast<models::offload::offload_resource>(r)));
      for (const bar& b : merged(rows_[r], end_s_ / width_))
        draw_bar(b, y);
      y += row_height;
    }
  }

  void draw_bar(const bar& b, int y) {
    const double span_s = b.end_s - b.start_s;
    const double width = std::max(span_s / end_s_ * width_, 0.5);
    out_ += "<rect x=\"" + pixels(x_of(b.start_s)) + "\" y=\"" + std::to_string(y + 2) +
            "\" width=\"" + pixels(width) + "\" height=\"" + std::to_string(bar_height) +
            "\" fill=\"" + colour_of(b.shown.at.batch) + "\"";
    if (b.count > 1 && span_s > 0)
      out_ += " fill-opacity=\"" + pixels(std::clamp(b.busy_s / span_s, 0.1, 1.0)) + "\"";
    out_ += "><title>" + title_of(b) + "</title></rect>\n";
  }

  void draw_legend(int y) {
    std::size_t n = 0;
    for (const std::int32_t batch : batches_) {
      const double x = left + static_cast<double>(n) * legend_step;
      if (n++ == most_in_legend || x + legend_step > left + width_) {
        out_ += text_at(x, y + 11, "", "and more");
        return;
      }
      out_ += "<rect x=\"" + pixels(x) + "\" y=\"" + std::to_string(y) +
              "\" width=\"12\" height=\"12\" fill=\"" + colour_of(batch) + "\"/>\n";
      out_ += text_at(x + 16, y + 11, "", batch < 0 ? "weights" : std::to_string(batch));
    }
  }

  const timeline_layout& layout_;
  int width_;
  std::array<std::vector<timeline_span>, models::offload::n_offload_resources> rows_;
  std::set<std::int32_t> batches_;
  int n_rows_ = 0;
  double end_s_ = 0;
  std::string out_;
};

} // namespace

std::string timeline_svg(std::span<const timeline_span> spans, const timeline_layout& layout) {
  return drawing(spans, layout).draw();
}

} // namespace twill::tools
