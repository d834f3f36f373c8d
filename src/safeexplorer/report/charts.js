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

// Counts, one by one; of many, their mean.
function counts(spread) {
  if (!spread) return "-";
  return spread.values.length <= 5 ? spread.values.map(full).join(", ") : full(spread.mean) + " on average";
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
  const step = niceStep((high - low) / 5);
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

// Who is drawn, to be switched on and off: at most MOST at first, the highlighted ones among them.
const MOST = 8;

function firstShown(items) {
  const rank = (item) => (item.ours ? 0 : item.dashed ? 2 : 1);
  const order = items.map((_, i) => i).sort((i, j) => rank(items[i]) - rank(items[j]) || i - j);
  return new Set(order.slice(0, MOST));
}

function legend(holder, items, shown, paint) {
  const list = element("ul", { class: "legend" }), buttons = [];
  const press = () => buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(shown.has(i))));
  items.forEach((item, i) => {
    const button = element("button", { type: "button" }), key = element("i");
    key.style.background = item.dashed
      ? `repeating-linear-gradient(90deg, ${item.colour} 0 4px, transparent 4px 7px)` : item.colour;
    button.append(key, element("span", item.ours ? { class: "ours" } : {}, item.label));
    button.addEventListener("click", () => {
      if (!shown.delete(i)) shown.add(i);
      press();
      paint();
    });
    buttons.push(button);
    list.append(element("li"));
    list.lastChild.append(button);
  });
  if (items.length > MOST) {
    const all = element("button", { type: "button", class: "all" }, `show all ${items.length}`);
    all.addEventListener("click", () => {
      items.forEach((_, i) => shown.add(i));
      press();
      paint();
    });
    list.append(element("li"));
    list.lastChild.append(all);
  }
  press();
  holder.append(list);
}

const within = (value, low, high) => Math.min(Math.max(value, low), high);
// What the axis must hold: every run and every point; an interval that is longer is cut at the frame.
const extent = (spread) => [spread.iqm, ...spread.values];

// items: {label, colour, ours, x: {iqm, low, high, values}, y: {...}, lines}
function plane(holder, items, label) {
  const width = fit(holder), height = 330, box = { left: 48, right: width - 14, top: 24, bottom: 284 };
  const svg = frame(holder, width, height, label), shown = firstShown(items);
  function paint() {
    svg.replaceChildren();
    const drawn = items.filter((_, i) => shown.has(i)), source = drawn.length ? drawn : items;
    const all = (axis) => source.flatMap((i) => extent(i[axis]));
    const x = logarithmic(all("x"), box.left + 14, box.right - 14), y = linear(all("y"), box.bottom - 12, box.top + 12);
    axes(svg, box, x, y, "falls in training (fewer is better)", "final reward");
    const taken = [];
    for (const item of drawn) {
      const [px, py] = [x(item.x.iqm), y(item.y.iqm)], bar = { stroke: item.colour, "stroke-width": 2, "stroke-opacity": 0.45 };
      taken.push({ left: px - 12, right: px + 12, top: py - 10, bottom: py + 10 });
      if (item.x.low !== null) {
        const [x1, x2] = [item.x.low, item.x.high].map((v) => within(x(v), box.left, box.right));
        shape(svg, "line", { ...bar, x1, x2, y1: py, y2: py });
        taken.push({ left: x1, right: x2, top: py - 2, bottom: py + 2 });
      }
      if (item.y.low !== null) {
        const [y1, y2] = [item.y.low, item.y.high].map((v) => within(y(v), box.top, box.bottom));
        shape(svg, "line", { ...bar, x1: px, x2: px, y1, y2 });
        taken.push({ left: px - 2, right: px + 2, top: y2, bottom: y1 });
      }
    }
    for (const item of drawn) {
      const [px, py] = [x(item.x.iqm), y(item.y.iqm)];
      tipOn(dot(svg, px, py, item), item.label, item.lines);
      place(svg, item, px, py, taken, box, width);
    }
  }
  legend(holder, items, shown, paint);
  paint();
}

// A name beside its dot where neither dots nor bars nor names are; else the legend alone has it.
function place(svg, item, px, py, taken, box, width) {
  const long = 6.6 * item.label.length;
  for (const dy of [0, -14, 14, -26, 26]) {
    for (const right of [true, false]) {
      const left = right ? px + 13 : px - 13 - long;
      const spot = { left, right: left + long, top: py + dy - 7, bottom: py + dy + 7 };
      const clash = taken.some((t) => spot.left - 4 < t.right && t.left < spot.right + 4 && spot.top < t.bottom && t.top < spot.bottom);
      if (clash || spot.left < box.left || spot.right > width || spot.top < box.top || spot.bottom > box.bottom) continue;
      taken.push(spot);
      shape(svg, "text", { class: "name" + (item.ours ? " ours" : ""), x: right ? left : left + long, y: py + dy + 4,
        "text-anchor": right ? "start" : "end" }, item.label);
      return;
    }
  }
}

// -- ranked intervals -------------------------------------------------------------------------------------

// items: {label, colour, ours, value: {iqm, low, high, values} or null, note, lines}; long names stand above their line.
function ranking(holder, items, xText, label) {
  const width = fit(holder), letters = Math.max(...items.map((i) => i.label.length)), above = 6.8 * letters > 0.4 * width;
  const row = above ? 40 : 27;
  const box = { left: above ? 12 : 6.8 * letters + 14, right: width - 66, top: 10, bottom: 16 + row * items.length };
  const svg = frame(holder, width, box.bottom + 40, label);
  const known = items.filter((i) => i.value);
  const x = logarithmic(known.length ? known.flatMap((i) => extent(i.value)) : [0, 10], box.left + 10, box.right - 10);
  axes(svg, box, x, { ticks: [] }, xText, "");
  items.forEach((item, i) => {
    const y = box.top + row * (i + (above ? 0.72 : 0.5)) + 2;
    const spot = above ? { x: box.left, y: y - 15 } : { x: box.left - 10, y: y + 4, "text-anchor": "end" };
    shape(svg, "text", { class: "name" + (item.ours ? " ours" : ""), ...spot }, item.label);
    shape(svg, "text", { x: box.right + 8, y: y + 4 }, item.note);
    if (!item.value) return;
    if (item.value.low !== null) {
      const [x1, x2] = [item.value.low, item.value.high].map((v) => within(x(v), box.left, box.right));
      shape(svg, "line", { x1, x2, y1: y, y2: y, stroke: item.colour, "stroke-width": 6, "stroke-opacity": 0.35 });
    }
    tipOn(dot(svg, x(item.value.iqm), y, item), item.label, item.lines);
  });
}

// -- lines ------------------------------------------------------------------------------------------------

// series: {label, colour, ours, dashed, curve: {x, y, low, high}}; options: {label, yText, log, format, zero}
function lines(holder, series, options) {
  const width = fit(holder), height = 290, box = { left: 48, right: width - 12, top: 24, bottom: 246 };
  const format = options.format || short, chosen = firstShown(series);
  const svg = frame(holder, width, height, options.label);
  legend(holder, series, chosen, paint);

  let x, shown, cross;
  function paint() {
    svg.replaceChildren();
    shown = series.filter((_, i) => chosen.has(i));
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
