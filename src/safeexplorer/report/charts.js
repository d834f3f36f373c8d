"use strict";
// Three kinds of chart, drawn as SVG: dots on a plane, ranked intervals, and lines over training.
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, text = null) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== null) node.textContent = text;
  return node;
}

function shape(parent, name, attributes = {}, text = null) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== null) node.textContent = text;
  parent.appendChild(node);
  return node;
}

function short(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  if (size >= 1e6) return +(value / 1e6).toFixed(2) + "M";
  if (size >= 10000) return Math.round(value / 1000) + "k";
  if (size >= 100) return Math.round(value).toLocaleString("en");
  if (size >= 1 || size === 0) return String(+value.toFixed(1));
  return String(+value.toPrecision(2));
}

function full(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  return size >= 100 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(3));
}

const percent = (value) => (value === null ? "-" : +(100 * value).toPrecision(3) + "%");

// -- the tooltip ------------------------------------------------------------------------------------------

function showTip(x, y, title, lines) {
  const tip = document.getElementById("tip");
  tip.replaceChildren(element("strong", {}, title));
  for (const [colour, label, value] of lines) {
    const row = element("div");
    const dot = element("i");
    dot.style.background = colour || "transparent";
    row.append(dot, element("span", {}, label), element("span", {}, value));
    tip.append(row);
  }
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 16 : x + 16;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.max(4, Math.min(y - box.height / 2, innerHeight - box.height - 4)) + "px";
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}

function tipOn(node, title, lines) {
  node.setAttribute("tabindex", "0");
  node.setAttribute("aria-label", title + ": " + lines.map((l) => l[1] + " " + l[2]).join(", "));
  node.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, title, lines));
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("focus", () => {
    const box = node.getBoundingClientRect();
    showTip(box.right, box.top + box.height / 2, title, lines);
  });
  node.addEventListener("blur", hideTip);
}

// -- scales -----------------------------------------------------------------------------------------------

function linear(values, from, to, zero = false) {
  let low = Math.min(...values), high = Math.max(...values);
  if (zero) low = Math.min(0, low);
  if (low === high) { low -= 1; high += 1; }
  const step = niceStep((high - low) / 4);
  const ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-6; t += step) ticks.push(+t.toPrecision(12));
  const scale = (v) => from + ((v - low) / (high - low)) * (to - from);
  return Object.assign(scale, { ticks });
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || 10 * power;
}

// Falls: logarithmic in 1 + falls, so that none at all has its place.
function logarithmic(values, from, to) {
  const inner = (v) => Math.log10(1 + Math.max(v, 0));
  const low = inner(Math.min(...values)), high = Math.max(inner(Math.max(...values)), low + 0.3);
  const floor = low < 0.7 ? 0 : Math.max(0, low - 0.15);
  const ticks = [0, 1, 10, 100, 1000, 1e4, 1e5, 1e6].filter((t) => inner(t) >= floor - 1e-9 && inner(t) <= high + 1e-9);
  const scale = (v) => from + ((inner(v) - floor) / (high - floor)) * (to - from);
  return Object.assign(scale, { ticks });
}

// As wide as its place, so that letters keep their size on a phone.
function fit(holder) {
  return Math.max(290, Math.min(520, Math.round(holder.clientWidth) || 520));
}

function frame(holder, width, height, label) {
  const svg = shape(holder, "svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
  return svg;
}

function axes(svg, box, x, y, xText, yText, format = short, xFormat = short) {
  for (const t of y.ticks) {
    shape(svg, "line", { class: "grid", x1: box.left, x2: box.right, y1: y(t), y2: y(t) });
    shape(svg, "text", { x: box.left - 6, y: y(t) + 4, "text-anchor": "end" }, format(t));
  }
  for (const t of x.ticks) {
    shape(svg, "line", { class: "grid", x1: x(t), x2: x(t), y1: box.top, y2: box.bottom });
    shape(svg, "text", { x: x(t), y: box.bottom + 15, "text-anchor": "middle" }, xFormat(t));
  }
  shape(svg, "line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom });
  shape(svg, "text", { x: (box.left + box.right) / 2, y: box.bottom + 31, "text-anchor": "middle" }, xText);
  if (yText) shape(svg, "text", { x: 4, y: box.top - 9 }, yText);
}

// -- dots -------------------------------------------------------------------------------------------------

function star(x, y, r) {
  const points = [];
  for (let i = 0; i < 10; i++) {
    const radius = i % 2 ? r * 0.45 : r, angle = (Math.PI * i) / 5 - Math.PI / 2;
    points.push((x + radius * Math.cos(angle)).toFixed(1) + "," + (y + radius * Math.sin(angle)).toFixed(1));
  }
  return points.join(" ");
}

function dot(svg, x, y, item) {
  return item.ours
    ? shape(svg, "polygon", { class: "halo mark", points: star(x, y, 11), fill: item.colour })
    : shape(svg, "circle", { class: "halo mark", cx: x, cy: y, r: 6.5, fill: item.colour });
}

// items: {label, colour, ours, x: {iqm, low, high}, y: {...}, lines}
function plane(holder, items, label) {
  const width = fit(holder), height = 330, box = { left: 48, right: width - 14, top: 24, bottom: 284 };
  const svg = frame(holder, width, height, label);
  const all = (axis) => items.flatMap((i) => [i[axis].iqm, i[axis].low, i[axis].high]);
  const x = logarithmic(all("x"), box.left + 14, box.right - 14), y = linear(all("y"), box.bottom - 12, box.top + 12);
  axes(svg, box, x, y, "falls in training (fewer is better)", "final reward");
  for (const item of items) {
    const [px, py] = [x(item.x.iqm), y(item.y.iqm)];
    const bar = { stroke: item.colour, "stroke-width": 2, "stroke-opacity": 0.45 };
    shape(svg, "line", { ...bar, x1: x(item.x.low), x2: x(item.x.high), y1: py, y2: py });
    shape(svg, "line", { ...bar, x1: px, x2: px, y1: y(item.y.low), y2: y(item.y.high) });
  }
  const dots = items.map((i) => ({ y: y(i.y.iqm), from: x(i.x.iqm) - 9, to: x(i.x.iqm) + 9 })), taken = [];
  for (const item of items) {
    const [px, py] = [x(item.x.iqm), y(item.y.iqm)];
    tipOn(dot(svg, px, py, item), item.label, item.lines);
    const name = item.label.length > 26 ? item.label.slice(0, 25) + "…" : item.label, long = 6.3 * name.length;
    const spots = [{ y: py, from: px + 13, to: px + 13 + long }, { y: py, from: px - 13 - long, to: px - 13 }];
    const clash = (a, b) => Math.abs(a.y - b.y) < 13 && a.from < b.to && b.from < a.to;
    const spot = spots.find((s) => s.from > box.left && s.to < width && ![...dots, ...taken].some((t) => clash(s, t)));
    if (!spot) continue; // the tooltip still names it
    taken.push(spot);
    const right = spot === spots[0];
    shape(svg, "text", { class: "name", x: right ? spot.from : spot.to, y: py + 4, "text-anchor": right ? "start" : "end" }, name);
  }
}

// -- ranked intervals -------------------------------------------------------------------------------------

// items: {label, colour, ours, value: {iqm, low, high} or null, note, lines}
function ranking(holder, items, xText, label) {
  const width = fit(holder), row = 27, letters = width < 420 ? 18 : 25;
  const box = { left: 6.6 * letters + 4, right: width - 62, top: 10, bottom: 16 + row * items.length };
  const svg = frame(holder, width, box.bottom + 40, label);
  const known = items.filter((i) => i.value);
  const x = logarithmic(known.length ? known.flatMap((i) => [i.value.low, i.value.high]) : [0, 10], box.left + 10, box.right - 10);
  axes(svg, box, x, { ticks: [] }, xText, "");
  items.forEach((item, i) => {
    const y = box.top + row * (i + 0.5) + 2;
    const name = item.label.length > letters ? item.label.slice(0, letters - 1) + "…" : item.label;
    shape(svg, "text", { class: "name", x: box.left - 10, y: y + 4, "text-anchor": "end" }, name);
    shape(svg, "text", { x: box.right + 8, y: y + 4 }, item.note);
    if (!item.value) return;
    const ends = { x1: x(item.value.low), x2: x(item.value.high), y1: y, y2: y };
    shape(svg, "line", { ...ends, stroke: item.colour, "stroke-width": 6, "stroke-opacity": 0.35 });
    tipOn(dot(svg, x(item.value.iqm), y, item), item.label, item.lines);
  });
}

// -- lines ------------------------------------------------------------------------------------------------

// series: {label, colour, ours, dashed, curve: {x, y, low, high}}; options: {label, yText, log, format, zero}
function lines(holder, series, options) {
  const width = fit(holder), height = 290, box = { left: 48, right: width - 12, top: 24, bottom: 246 };
  const format = options.format || short, hidden = new Set();
  const svg = frame(holder, width, height, options.label);
  const legend = element("ul", { class: "legend" });
  series.forEach((s, i) => {
    const button = element("button", { type: "button", "aria-pressed": "true" });
    const key = element("i");
    key.style.background = s.colour;
    button.append(key, element("span", {}, s.label));
    button.addEventListener("click", () => {
      if (!hidden.delete(i)) hidden.add(i);
      button.setAttribute("aria-pressed", String(!hidden.has(i)));
      paint();
    });
    const item = element("li");
    item.append(button);
    legend.append(item);
  });
  holder.append(legend);

  let x, shown, cross;
  function paint() {
    svg.replaceChildren();
    shown = series.filter((_, i) => !hidden.has(i));
    const source = shown.length ? shown : series;
    const heights = source.flatMap((s) => [Math.min(...s.curve.low), Math.max(...s.curve.high)]);
    x = linear([0, ...source.map((s) => s.curve.x.at(-1))], box.left, box.right);
    const y = (options.log ? logarithmic : linear)(heights, box.bottom, box.top, options.zero);
    axes(svg, box, x, y, "environment steps", options.yText, format);
    for (const s of shown) {
      const c = s.curve, at = (values, i) => x(c.x[i]).toFixed(1) + "," + y(values[i]).toFixed(1);
      const order = c.x.map((_, i) => i);
      const rim = order.map((i) => at(c.high, i)).concat(order.map((i) => at(c.low, i)).reverse());
      shape(svg, "polygon", { points: rim.join(" "), fill: s.colour, "fill-opacity": 0.12 });
      const stroke = { stroke: s.colour, "stroke-width": s.ours ? 2.6 : 1.6, fill: "none", "stroke-linejoin": "round" };
      if (s.dashed) stroke["stroke-dasharray"] = "5 4";
      shape(svg, "polyline", { class: "line", points: order.map((i) => at(c.y, i)).join(" "), ...stroke });
    }
    cross = shape(svg, "line", { class: "cross", y1: box.top, y2: box.bottom, visibility: "hidden" });
  }
  paint();

  svg.addEventListener("pointermove", (event) => {
    const place = svg.getBoundingClientRect(), px = ((event.clientX - place.left) / place.width) * width;
    const nearest = (c) => c.x.reduce((best, v, i) => (Math.abs(x(v) - px) < Math.abs(x(c.x[best]) - px) ? i : best), 0);
    if (!shown.length || px < box.left - 8 || px > box.right + 8) return leave();
    const longest = shown.reduce((a, b) => (b.curve.x.at(-1) > a.curve.x.at(-1) ? b : a)).curve;
    const steps = longest.x[nearest(longest)];
    cross.setAttribute("x1", x(steps));
    cross.setAttribute("x2", x(steps));
    cross.setAttribute("visibility", "visible");
    const rows = shown.filter((s) => s.curve.x.at(-1) >= steps * 0.99).map((s) => {
      return [s.colour, s.label, (options.tip || options.format || full)(s.curve.y[nearest(s.curve)])];
    });
    showTip(event.clientX, event.clientY, short(steps) + " steps", rows);
  });
  function leave() {
    cross.setAttribute("visibility", "hidden");
    hideTip();
  }
  svg.addEventListener("pointerleave", leave);
}
