"use strict";
// The page, from top to bottom. Every string of the data goes through textContent.
const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main");

function section(id, title, text = "") {
  const part = element("section", { id });
  part.append(element("h2", {}, title));
  if (text) part.append(element("p", { class: "soft" }, text));
  main.append(part);
  document.getElementById("nav").append(element("a", { href: "#" + id }, title));
  return part;
}

function chart(parent, title, caption, draw) {
  const figure = element("figure");
  figure.append(element("h3", {}, title));
  const holder = element("div");
  figure.append(holder, element("figcaption", {}, caption));
  parent.append(figure);
  draw(holder);
}

function plusMinus(spread, format = full) {
  if (!spread) return "-";
  return format(spread.mean) + (spread.deviation === null ? "" : " ± " + format(spread.deviation));
}

function interval(spread) {
  return !spread ? "-" : spread.low === null ? "fewer than three runs" : full(spread.low) + " to " + full(spread.high);
}

// -- the comparison in a minute ---------------------------------------------------------------------------

const unfinished = data.runs.filter((run) => run.status !== "finished");
document.getElementById("lead").textContent =
  `${data.runs.length} runs of ${new Set(data.groups.map((g) => g.method)).size} methods on ` +
  `${data.robots.map((r) => r.label).join(", ")}` +
  (unfinished.length ? `; ${unfinished.length} of them did not finish and are in no average.` : ".");

const million = (steps) => (steps >= 1e5 ? +(steps / 1e6).toFixed(1) + " million" : full(steps)) + " steps";
const runs = (spread) => (spread.values.length === 1 ? "one run" : `${spread.values.length} runs`);
const headlines = element("div", { class: "headlines" });
for (const c of data.comparisons) {
  const card = element("div", { class: "headline" }), { ours, theirs } = c;
  card.append(element("span", {}, c.robot), element("b", {}, counts(ours.falls)));
  card.append(element("span", {}, `falls of ${ours.label} in ${million(ours.steps)} (${runs(ours.falls)})`));
  const lines = [`${theirs.label}: ${counts(theirs.falls)} falls in ${million(theirs.steps)} (${runs(theirs.falls)}).`];
  if (ours.reward && theirs.reward) {
    lines.push(`Final reward ${plusMinus(ours.reward)} against ${plusMinus(theirs.reward)}` +
      (c.won === null ? "." : `, higher in ${full(c.won)} of ${c.pairs} pairs of runs.`));
  }
  card.append(element("br"), element("small", {}, lines.join(" ")));
  headlines.append(card);
}
if (data.comparisons.length) main.append(headlines);

const lost = data.runs.filter((run) => run.status === "failed");
if (lost.length) {
  const part = section("failures", "Failed runs", "These runs could not be finished. Every table that needs one says so.");
  const list = element("ul", { class: "failures" });
  for (const run of lost) list.append(element("li", {}, `${run.robot}, ${run.method}, seed ${run.seed} (${run.name}): ${run.error}`));
  part.append(list);
}

// -- robot by robot ---------------------------------------------------------------------------------------

for (const robot of data.robots) {
  const groups = data.groups.filter((g) => g.robot === robot.id);
  const part = section(robot.id, robot.label, `Runs of ${robot.steps} steps.` + (robot.bar
    ? ` Success: the mean return of 100 episodes reaches ${full(robot.bar.value)}, 80% of the final reward of ` +
      `${robot.bar.of}, the best of the methods in the main table.` : ""));
  const grid = element("div", { class: "charts" });
  part.append(grid);

  const placed = groups.filter((g) => g.reward && g.falls);
  if (placed.length) chart(grid, "Falls against return", "Up and to the left is better. Interquartile means; bars: 95% intervals, from three runs on.",
    (holder) => plane(holder, placed.map((g) => ({ label: g.label, colour: g.colour, ours: g.ours, dashed: g.dashed, x: g.falls, y: g.reward,
      lines: [["", "falls", counts(g.falls)], ["", "final reward", plusMinus(g.reward)], ["", "runs", String(g.finished)]] })),
      "falls against return on " + robot.label));

  const ran = groups.filter((g) => g.finished);
  const byFalls = [...ran].sort((a, b) => (a.success ? a.success.iqm : Infinity) - (b.success ? b.success.iqm : Infinity));
  if (ran.length && robot.bar) chart(grid, "Falls to success", "How often a method fell before it first succeeded; k/n runs that did. Interquartile means, 95% intervals.",
    (holder) => ranking(holder, byFalls.map((g) => ({ label: g.label, colour: g.colour, ours: g.ours, value: g.success,
      note: (g.success ? "" : "never ") + g.reached + "/" + g.finished,
      lines: [["", "falls", counts(g.success)], ["", "95% interval", interval(g.success)],
        ["", "runs that succeed", g.reached + " of " + g.finished]] })),
      "falls before success", "falls to success on " + robot.label));

  const curves = (name) => ran.filter((g) => g.curves[name]).map((g) => ({ ...g, curve: g.curves[name] }));
  const over = "Line: mean over seeds; shade: smallest to largest. ";
  const plots = [
    ["Return", over + "Trailing mean over 100 episodes, recovery included.", curves("return"), { yText: "return" }],
    ["Falls", over + "Cumulative, on a logarithmic axis.", curves("falls"), { yText: "falls", log: true }],
    ["Recovery rate", over + "Share of steps on which the recovery acted.",
      curves("recovery").filter((s) => Math.max(...s.curve.high) > 0), { yText: "", format: percent, zero: true }],
    ["Radius of the safe region", "The curriculum: inside this distance the policy acts.", curves("radius"), { yText: "d", zero: true }],
    ["Objective gap", "Return with the recovery less return alone, measured without it every few updates; 9-point average.",
      curves("gap"), { yText: "J_mix - J" }],
  ];
  for (const [title, caption, series, options] of plots) {
    if (series.length) chart(grid, title, caption, (holder) => lines(holder, series, { ...options, label: title + " on " + robot.label }));
  }
}

// -- tables -----------------------------------------------------------------------------------------------

function row(kind, label, cells, best = []) {
  const line = element("tr", kind ? { class: kind } : {});
  line.append(element("th", { scope: "row" }, label));
  cells.forEach((text, i) => line.append(element("td", best[i] ? { class: "best" } : {}, text)));
  return line;
}

if (data.tables.length) {
  const part = section("tables", "Beside the paper", "Ours above, the paper's below. The best of each column is green, one run never.");
  for (const table of data.tables) {
    const fold = element("details", table.whole ? { class: "table", open: "" } : { class: "table" }), title = element("summary");
    title.append(element("h3", {}, table.title), table.whole ? "" : element("span", { class: "soft" }, "no run of its budget yet"));
    fold.append(title, element("p", { class: "caption" }, table.caption));
    const body = element("tbody"), head = element("tr"), whole = element("table"), top = element("thead");
    head.append(element("th", { scope: "col" }, ""), ...table.headings.map((h) => element("th", { scope: "col" }, h)));
    for (const r of table.rows) {
      body.append(row("", r.label, r.ours, r.best));
      if (r.theirs) body.append(row("paper", "paper", r.theirs));
    }
    top.append(head);
    whole.append(top, body);
    const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": table.title });
    scroll.append(whole);
    fold.append(scroll);
    const notes = element("ul", { class: "notes" });
    for (const note of table.notes) notes.append(element("li", {}, note));
    fold.append(notes);
    part.append(fold);
  }
}

// -- films ------------------------------------------------------------------------------------------------

if (data.films.length) {
  const part = section("films", "Films", "Recovery steps are tinted; the bar is the distance D, the mark in its middle the radius d.");
  const grid = element("div", { class: "films" });
  for (const film of data.films) {
    const figure = element("figure"), moving = film.source.startsWith("data:video");
    const picture = moving
      ? element("video", { src: film.source, controls: "", loop: "", muted: "", playsinline: "" })
      : element("img", { src: film.source, alt: film.label });
    figure.append(picture, element("figcaption", {}, film.label));
    grid.append(figure);
  }
  part.append(grid);
}

// -- runs -------------------------------------------------------------------------------------------------

function facts(values) {
  const list = element("dl");
  for (const [key, value] of Object.entries(values)) {
    const line = element("div");
    const text = value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
    line.append(element("dt", {}, key), element("dd", {}, text));
    list.append(line);
  }
  return list;
}

const part = section("runs", "Runs", "Unfold one for its settings and where it comes from.");
for (const run of data.runs) {
  const details = element("details"), summary = element("summary");
  const state = run.status === "finished" ? `reward ${full(run.reward)}, ${full(run.falls)} falls`
    : run.status === "failed" ? "failed: " + run.error : percent(run.done) + " done";
  summary.append(element("strong", {}, `${run.robot}, ${run.method}, seed ${run.seed} `),
    element("span", { class: "status-" + run.status }, state + " "), element("span", { class: "soft" }, run.name));
  details.append(summary);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(facts(run.settings), facts(run.provenance));
  });
  part.append(details);
}
