#include "tools/twill-bench/report/svg_chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/twill-bench/engine/text.hpp"

namespace twill::bench {
namespace {

constexpr double width = 860, height = 460;                     // pixels
constexpr double left = 78, right = 220, top = 48, bottom = 64; // margins
constexpr double plot_width = width - left - right, plot_height = height - top - bottom;
constexpr std::size_t most_x_labels = 24;

/// Colours that readers with most kinds of colour blindness can tell apart (Okabe and Ito 2008).
constexpr std::array<const char*, 8> colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                             "#e69f00", "#56b4e9", "#000000", "#8c6d00"};

std::string px(double at) {
  return fixed(at, 1);
}

std::string text_at(double x, double y, const char* anchor, const std::string& text,
                    const std::string& more = "") {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\"" + more +
         ">" + escape_markup(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return "<line x1=\"" + px(x1) + "\" y1=\"" + px(y1) + "\" x2=\"" + px(x2) + "\" y2=\"" + px(y2) +
         "\" stroke=\"" + colour + "\"/>\n";
}

/// A step of 1, 2 or 5 times a power of ten, so that about five steps reach `most`.
double step_for(double most) {
  const double raw = most / 5;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

double most_of(const chart& of) {
  double most = 0;
  for (const chart_series& each : of.series)
    for (const auto& value : each.values)
      if (value && std::isfinite(*value)) most = std::max(most, *value);
  return most > 0 ? most : 1;
}

class drawing {
public:
  explicit drawing(const chart& of) : of_(of), step_(step_for(most_of(of))) {
    highest_ = step_ * std::ceil(most_of(of) / step_ - 1e-9);
  }

  std::string axes() const {
    std::string out = text_at(left + plot_width / 2, 26, "middle",
                              of_.subject.empty() ? of_.title : of_.subject + ": " + of_.title,
                              " font-size=\"16\" font-weight=\"bold\"");
    const int digits = step_ >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step_) - 1e-9));
    for (double value = 0; value <= highest_ + step_ / 2; value += step_) {
      out += line(left, y(value), left + plot_width, y(value), value == 0 ? "#444" : "#ddd");
      out += text_at(left - 8, y(value) + 4, "end", fixed(value, digits));
    }
    const std::size_t every = (of_.places.size() + most_x_labels - 1) / most_x_labels;
    for (std::size_t i = 0; i < of_.places.size(); i += std::max<std::size_t>(1, every)) {
      const bool slanted = of_.places.size() > 8;
      const std::string turn =
          slanted ? " transform=\"rotate(-40 " + px(x(i)) + " " + px(top + plot_height + 18) + ")\""
                  : "";
      out += text_at(x(i), top + plot_height + 18, slanted ? "end" : "middle", of_.places[i], turn);
    }
    out += text_at(left + plot_width / 2, height - 8, "middle", of_.x_title);
    out += text_at(18, top + plot_height / 2, "middle", of_.y_title,
                   " transform=\"rotate(-90 18 " + px(top + plot_height / 2) + ")\"");
    return out;
  }

  std::string bars() const {
    std::string out;
    const chart_series& counts = of_.series.front();
    const double room = plot_width / double(std::max<std::size_t>(1, counts.values.size()));
    for (std::size_t i = 0; i < counts.values.size(); ++i) {
      const double value = counts.values[i].value_or(0);
      if (!(value > 0)) continue;
      out += "<rect x=\"" + px(left + double(i) * room + 1) + "\" y=\"" + px(y(value)) +
             "\" width=\"" + px(std::max(1.0, room - 2)) + "\" height=\"" +
             px(top + plot_height - y(value)) + "\" fill=\"" + colours[0] + "\"><title>" +
             escape_markup(of_.places[i]) + ": " + fixed(value, 0) + "</title></rect>\n";
    }
    return out;
  }

  std::string series(std::size_t n) const {
    const chart_series& each = of_.series[n];
    const std::string colour = colours[n % colours.size()];
    const bool many = each.values.size() > 40;
    std::string path, marks;
    bool drawing_on = false;
    for (std::size_t i = 0; i < each.values.size(); ++i) {
      const auto& value = each.values[i];
      if (!value || !std::isfinite(*value)) {
        drawing_on = false;
        continue;
      }
      path += (drawing_on ? "L" : "M") + px(x(i)) + " " + px(y(*value));
      drawing_on = true;
      if (!many)
        marks += "<circle cx=\"" + px(x(i)) + "\" cy=\"" + px(y(*value)) + "\" r=\"3.5\" fill=\"" +
                 colour + "\"><title>" + escape_markup(each.name + ", " + of_.places[i]) + ": " +
                 fixed(*value, 2) + "</title></circle>\n";
    }
    const double at = top + 10 + 20 * double(n), from = left + plot_width + 16;
    return "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"" +
           (many ? "1.2" : "2") + "\"/>\n" + marks + "<line x1=\"" + px(from) + "\" y1=\"" +
           px(at) + "\" x2=\"" + px(from + 22) + "\" y2=\"" + px(at) + "\" stroke=\"" + colour +
           "\" stroke-width=\"2\"/>\n" + text_at(from + 28, at + 4, "start", each.name);
  }

private:
  double x(std::size_t i) const {
    if (of_.places.size() < 2) return left + plot_width / 2;
    if (of_.bars) return left + plot_width * (double(i) + 0.5) / double(of_.places.size());
    const double inset = of_.places.size() > 40 ? 0 : 24;
    return left + inset + (plot_width - 2 * inset) * double(i) / double(of_.places.size() - 1);
  }
  double y(double value) const { return top + plot_height * (1 - value / highest_); }

  const chart& of_;
  double step_;
  double highest_ = 1;
};

} // namespace

std::string escape_markup(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string svg_chart(const chart& of) {
  const drawing draw(of);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"460\" "
                    "viewBox=\"0 0 860 460\" font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<rect width=\"860\" height=\"460\" fill=\"#fff\"/>\n";
  out += draw.axes();
  if (of.bars && !of.series.empty()) return out + draw.bars() + "</svg>\n";
  for (std::size_t n = 0; n < of.series.size(); ++n)
    out += draw.series(n);
  return out + "</svg>\n";
}

} // namespace twill::bench
