// Charts as SVG, each with a summary in words and its figures as a table. It stands alone, so that the reports of
// twill-bench can hold it: no import, no style but classes (chart.css), and text becomes text nodes and nothing else.

const svgNames = "http://www.w3.org/2000/svg";
const height = 200;
const margin = { left: 52, right: 10, top: 10, bottom: 26 };
const mostRows = 120; // of a table
const fewPoints = 40; // up to so many are marked one by one

function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(svgNames, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A number as people read it: 0.0123, 4.56, 78, 1,234, 5.68 M. */
export function readable(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "none";
  const size = Math.abs(value);
  for (const [unit, name] of [[1e12, " T"], [1e9, " G"], [1e6, " M"]])
    if (size >= unit) return `${(value / unit).toFixed(2)}${name}`;
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}

function classOf(series) {
  return `series-${(series % 8) + 1}`;
}

/** 1, 2 or 5 times a power of ten, so that about `wanted` steps reach `most`. */
function niceStep(most, wanted) {
  const raw = most / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].find((factor) => raw <= factor * power * 1.0000001) * power;
}

/** The same for bytes, whose units are powers of 1024. */
function niceByteStep(most, wanted) {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log(most / wanted) / Math.log(1024)));
  return niceStep(most / unit, wanted) * unit;
}

/** What a figure of any kind has: a title, what it says now, the drawing, a legend, and a table on demand. */
class Figure {
  #shown = null;
  #width = 0;

  constructor(title) {
    this.title = title;
    this.now = html("span", { class: "chart-now" });
    this.drawing = svg("svg", { class: "chart-drawing", role: "img", "aria-label": `${title}. No figures yet.`, height });
    this.legend = html("ul", { class: "legend" });
    this.details = html("details", {}, html("summary", {}, "As a table"));
    this.element = html("figure", { class: "chart" }, html("figcaption", {}, html("span", { class: "chart-title" }, title), this.now),
      this.drawing, this.legend, this.details);
    this.details.addEventListener("toggle", () => this.#fillTable());
    this.drawing.addEventListener("pointermove", (event) => this.point(event.clientX - this.drawing.getBoundingClientRect().left));
    this.drawing.addEventListener("pointerleave", () => this.point(null));
    new ResizeObserver(([{ contentRect }]) => {
      const width = Math.floor(contentRect.width);
      if (width === this.#width || width === 0) return;
      this.#width = width;
      this.#draw();
    }).observe(this.element);
  }

  /** Shows this data, whose members depend on the kind of chart; `summary` says it in words. */
  show(data) {
    this.#shown = data;
    this.#draw();
  }

  get shown() {
    return this.#shown;
  }

  #draw() {
    if (this.#shown === null || this.#width === 0) return;
    this.now.textContent = this.#shown.now ?? "";
    this.drawing.setAttribute("aria-label", `${this.title}. ${this.#shown.summary ?? this.#shown.now ?? ""}`);
    this.drawing.setAttribute("width", this.#width);
    this.drawing.setAttribute("viewBox", `0 0 ${this.#width} ${height}`);
    this.drawing.replaceChildren(...this.draw(this.#shown, this.#width));
  }

  /** The table is made when it is opened and stays so while somebody reads it. */
  #fillTable() {
    this.details.querySelector(".table")?.remove();
    if (!this.details.open || this.#shown === null) return;
    const { head, rows } = this.table(this.#shown);
    const caption = this.#shown.asOf === undefined ? this.title : `${this.title}, as of ${this.#shown.asOf}`;
    this.details.append(html("div", { class: "table", role: "region", "aria-label": `${this.title}, as a table`, tabindex: "0" },
      html("table", {}, html("caption", {}, caption),
        html("thead", {}, html("tr", {}, ...head.map((text) => html("th", { scope: "col" }, text)))),
        html("tbody", {}, ...rows.map(([first, ...others]) => html("tr", {}, html("th", { scope: "row" }, first),
          ...others.map((text) => html("td", {}, text))))))));
  }

  point() {}

  setLegend(entries) {
    const text = JSON.stringify(entries);
    if (this.legend.dataset.text === text) return;
    this.legend.dataset.text = text;
    this.legend.replaceChildren(...entries.map(({ name, value, number }) => html("li", {},
      html("span", { class: `swatch ${classOf(number)}`, "aria-hidden": "true" }), value === undefined ? name : `${name}: ${value}`)));
  }

  /** Lines and labels of the y axis; gives also the scale. */
  yAxis(most, width, format, stepOf = niceStep) {
    const step = stepOf(most > 0 ? most : 1, 4);
    const highest = step * Math.max(1, Math.ceil((most > 0 ? most : 1) / step - 1e-9));
    const bottom = height - margin.bottom;
    const y = (value) => bottom - (bottom - margin.top) * Math.min(1, Math.max(0, value / highest));
    const parts = [];
    for (let value = 0; value <= highest + step / 2; value += step) {
      parts.push(svg("line", { class: value === 0 ? "axis" : "grid", x1: margin.left, x2: width - margin.right, y1: y(value), y2: y(value) }));
      parts.push(svg("text", { class: "label", x: margin.left - 6, y: y(value) + 4, "text-anchor": "end" }, format(value)));
    }
    return { y, parts };
  }

  xLabel(x, text, width) {
    const anchor = x < margin.left + 12 ? "start" : x > width - 40 ? "end" : "middle";
    return svg("text", { class: "label", x, y: height - 8, "text-anchor": anchor }, text);
  }
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const clockWithSeconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** The time of day; `ms` since 1970. */
export function timeOfDay(ms) {
  return clockWithSeconds.format(ms);
}

const timeSteps = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600].map((seconds) => 1000 * seconds);

/**
 * Lines over time or over named places. show({at, names, series: [values], from, to, now, summary}): `at` are times in
 * ms since 1970, or `places` are names, evenly spaced. A value that is null breaks its line.
 */
export class LineChart extends Figure {
  #format;
  #names;
  #most;
  #step;
  #x = null;

  /** `most` is the least height of the axis; `isBytes` marks it at powers of 1024. */
  constructor(title, names, { format = readable, most = 0, isBytes = false } = {}) {
    super(title);
    this.#names = names;
    this.#format = format;
    this.#most = most;
    this.#step = isBytes ? niceByteStep : niceStep;
  }

  draw(data, width) {
    const { series, places } = data;
    const values = series.flat().filter((value) => value !== null && Number.isFinite(value));
    const { y, parts } = this.yAxis(Math.max(this.#most, ...values), width, this.#format, this.#step);
    const room = width - margin.left - margin.right;
    const count = places?.length ?? data.at.length;
    const from = places ? 0 : data.from;
    const to = places ? Math.max(1, count - 1) : data.to;
    const scale = (value) => margin.left + (room * (value - from)) / Math.max(1e-9, to - from);
    this.#x = (i) => scale(places ? i : data.at[i]);
    if (places) {
      const widest = Math.max(...places.map((place) => place.length), 1);
      const every = Math.max(1, Math.ceil((count * (7 * widest + 14)) / room));
      for (let i = 0; i < count; i += every) parts.push(this.xLabel(this.#x(i), places[i], width));
    } else {
      const step = timeSteps.find((each) => ((to - from) / each) * 74 <= room) ?? timeSteps.at(-1);
      const zone = new Date(to).getTimezoneOffset() * 60_000; // so that ticks are at whole local hours
      for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) {
        if (scale(at) > margin.left - 1) parts.push(this.xLabel(scale(at), (step < 60_000 ? clockWithSeconds : clock).format(at), width));
      }
    }
    series.forEach((line, n) => parts.push(...this.#line(line, n, y)));
    this.cursor = svg("line", { class: "cursor", y1: margin.top, y2: height - margin.bottom, visibility: "hidden" });
    parts.push(this.cursor);
    this.#legendAt(null);
    return parts;
  }

  #line(values, n, y) {
    let path = "";
    const marks = [];
    for (let i = 0; i < values.length; ++i) {
      if (values[i] === null || !Number.isFinite(values[i])) continue;
      const begins = i === 0 || values[i - 1] === null || !Number.isFinite(values[i - 1]);
      const ends = i + 1 === values.length || values[i + 1] === null || !Number.isFinite(values[i + 1]);
      const at = `${this.#x(i).toFixed(1)} ${y(values[i]).toFixed(1)}`;
      path += (begins ? "M" : "L") + at;
      if ((begins && ends) || values.length <= fewPoints)
        marks.push(svg("circle", { class: `mark ${classOf(n)}`, cx: this.#x(i).toFixed(1), cy: y(values[i]).toFixed(1), r: 2.5 }));
    }
    return [svg("path", { class: `line ${classOf(n)}`, d: path }), ...marks];
  }

  #nameOf(data, i) {
    return data.places ? data.places[i] : timeOfDay(data.at[i]);
  }

  #legendAt(i) {
    const data = this.shown;
    if (this.#names.length > 1 || i !== null)
      this.setLegend(this.#names.map((name, n) => ({ name, number: n, value: i === null ? undefined : this.#format(data.series[n][i] ?? null) })));
    else this.setLegend([]);
    this.now.textContent = i === null ? data.now ?? "" : this.#nameOf(data, i);
  }

  point(offset) {
    const data = this.shown;
    if (data === null || this.#x === null) return;
    const count = data.series[0]?.length ?? 0;
    if (offset === null || count === 0) {
      this.cursor.setAttribute("visibility", "hidden");
      return this.#legendAt(null);
    }
    let best = 0;
    for (let i = 1; i < count; ++i) if (Math.abs(this.#x(i) - offset) < Math.abs(this.#x(best) - offset)) best = i;
    for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, this.#x(best).toFixed(1));
    this.cursor.setAttribute("visibility", "visible");
    this.#legendAt(best);
  }

  table(data) {
    const count = data.series[0]?.length ?? 0;
    const every = Math.max(1, Math.ceil(count / mostRows));
    const rows = [];
    for (let i = count - 1; i >= 0; i -= every)
      rows.push([this.#nameOf(data, i), ...data.series.map((values) => this.#format(values[i] ?? null))]);
    if (data.places) rows.reverse();
    return { head: [data.places ? data.xTitle ?? "Place" : "Time", ...this.#names], rows };
  }
}

/** How many of each kind. show({names, counts, now, summary}): a bar for each name. */
export class BarChart extends Figure {
  #placeTitle;

  constructor(title, placeTitle) {
    super(title);
    this.#placeTitle = placeTitle;
  }

  draw({ names, counts }, width) {
    const { y, parts } = this.yAxis(Math.max(0, ...counts), width, readable);
    const room = (width - margin.left - margin.right) / Math.max(1, names.length);
    const widest = Math.max(...names.map((name) => name.length), 1);
    const every = Math.max(1, Math.ceil((7 * widest + 8) / room));
    names.forEach((name, i) => {
      const left = margin.left + i * room;
      if (counts[i] > 0) {
        const top = Math.min(y(counts[i]), y(0) - 1);
        parts.push(svg("rect", { class: "bar-of series-1", x: (left + 1).toFixed(1), y: top.toFixed(1), width: Math.max(1, room - 2).toFixed(1),
          height: (y(0) - top).toFixed(1) }, svg("title", {}, `${name}: ${readable(counts[i])}`)));
      }
      if (i % every === 0) parts.push(this.xLabel(left + room / 2, name, width));
    });
    return parts;
  }

  table({ names, counts }) {
    const all = counts.reduce((sum, count) => sum + count, 0);
    return { head: [this.#placeTitle, "Count", "Share"], rows: names.map((name, i) =>
      [name, readable(counts[i]), all === 0 ? "none" : `${((100 * counts[i]) / all).toFixed(1)} %`]) };
  }
}

/** What was busy when. show({lanes: [{name, spans: [{from, to, name}]}], to, now, summary}): times in milliseconds. */
export class TimelineChart extends Figure {
  draw({ lanes, to }, width) {
    const left = 110;
    const room = width - left - margin.right;
    const bottom = height - margin.bottom;
    const x = (at) => left + (room * at) / Math.max(1e-9, to);
    const parts = [];
    const step = niceStep(to > 0 ? to : 1, Math.max(2, Math.floor(room / 90)));
    for (let at = 0; at <= to + step / 1000; at += step) {
      parts.push(svg("line", { class: "grid", x1: x(at), x2: x(at), y1: margin.top, y2: bottom }));
      parts.push(this.xLabel(x(at), `${readable(Number(at.toPrecision(6)))} ms`, width));
    }
    const tall = (bottom - margin.top) / Math.max(1, lanes.length);
    lanes.forEach(({ name, spans }, n) => {
      const top = margin.top + n * tall;
      parts.push(svg("text", { class: "label", x: left - 8, y: top + tall / 2 + 4, "text-anchor": "end" }, name));
      for (const span of spans)
        parts.push(svg("rect", { class: `span-of ${classOf(n)}`, x: x(span.from).toFixed(2), width: Math.max(0.5, x(span.to) - x(span.from)).toFixed(2),
          y: (top + 4).toFixed(1), height: Math.max(4, tall - 8).toFixed(1) },
          svg("title", {}, `${name}, ${span.name}: ${readable(span.from)} to ${readable(span.to)} ms`)));
    });
    return parts;
  }

  table({ lanes }) {
    return { head: ["What", "Which", "From (ms)", "To (ms)"], rows: lanes.flatMap(({ name, spans }) =>
      spans.map((span) => [name, span.name, span.from.toFixed(2), span.to.toFixed(2)])).slice(0, 4 * mostRows) };
  }
}
