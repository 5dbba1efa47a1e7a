// The time line of a run: a drawing, and the same as a table.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const ROW_HEIGHT = 22;
const MOST_DRAWN = 4000;

function svg(name, attributes, content = []) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

function microseconds(value) {
  if (value < 1000) return `${Number(value.toFixed(1))} µs`;
  return value < 1e6 ? `${Number((value / 1000).toFixed(2))} ms` : `${Number((value / 1e6).toFixed(3))} s`;
}

// The events between two times, those that take longest if there are many: a row for each kind.
function drawing(events, begin, end) {
  const rows = [...new Set(events.map((event) => `${event.row}\n${event.kind}`))];
  const width = 1000;
  const scale = width / (end - begin);
  let shown = events.filter((event) => event.begin + event.length >= begin && event.begin <= end);
  if (shown.length > MOST_DRAWN) {
    shown = shown.toSorted((a, b) => b.length - a.length).slice(0, MOST_DRAWN);
  }
  const bars = shown.map((event) => {
    const from = Math.max(0, (event.begin - begin) * scale);
    const to = Math.min(width, (event.begin + event.length - begin) * scale);
    const row = rows.indexOf(`${event.row}\n${event.kind}`);
    const bar = svg("rect", {
      x: from,
      y: row * ROW_HEIGHT + 3,
      width: Math.max(to - from, 0.6),
      height: ROW_HEIGHT - 6,
      class: `event ${/^[a-z]+$/.test(event.kind) ? event.kind : ""}`,
    });
    bar.append(svg("title", {}, [`${event.name}: ${microseconds(event.length)} from ${microseconds(event.begin)} on. ${event.about}`]));
    return bar;
  });
  const names = element(
    "div",
    { class: "rows", "aria-hidden": "true" },
    rows.map((row) => element("span", {}, row.replace("\n", " · "))),
  );
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${rows.length * ROW_HEIGHT}`,
      height: rows.length * ROW_HEIGHT,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${events.length} events in ${microseconds(end - begin)}; the table has them by name`,
    },
    bars,
  );
  return element("div", { class: "timeline" }, [names, picture]);
}

function runView() {
  const { run } = facts;
  if (!run) {
    return [
      element("h2", {}, "Run"),
      element("p", {}, [
        "No run was given. ",
        element("code", {}, "AOTC_TRACE=trace.json ./program"),
        " or ",
        element("code", {}, "./program --json --repeat 20 > run.json"),
        " records one, and ",
        element("code", {}, "aotc explore INPUT.mlir --run FILE"),
        " shows it here.",
      ]),
    ];
  }
  const parts = [element("h2", {}, `Run: ${run.file}`)];
  if (run.report.length) parts.push(pairs(run.report));
  if (!run.events.length) return parts;
  const last = Math.max(...run.events.map((event) => event.begin + event.length), 1);
  let [begin, end] = [0, last];
  const holder = element("div");
  const said = element("p", { role: "status" });
  const draw = () => {
    holder.replaceChildren(drawing(run.events, begin, end));
    said.textContent = `From ${microseconds(begin)} to ${microseconds(end)}.`;
  };
  const move = (by, zoom) => {
    const length = Math.min((end - begin) / zoom, last);
    const middle = (begin + end) / 2 + by * (end - begin);
    begin = Math.max(0, Math.min(middle - length / 2, last - length));
    end = begin + length;
    draw();
  };
  const button = (words, by, zoom) => element("button", { type: "button", onclick: () => move(by, zoom) }, words);
  parts.push(
    element("p", { class: "bar" }, [
      button("Zoom in", 0, 2),
      button("Zoom out", 0, 0.5),
      button("Earlier", -0.5, 1),
      button("Later", 0.5, 1),
    ]),
    holder,
    said,
  );
  draw();
  const sums = new Map();
  for (const event of run.events) {
    const key = `${event.kind}\n${event.name}`;
    const sum = sums.get(key) ?? { count: 0, total: 0, most: 0 };
    sums.set(key, { count: sum.count + 1, total: sum.total + event.length, most: Math.max(sum.most, event.length) });
  }
  parts.push(
    table(
      "Events by name",
      ["Kind", "Name", "Count", "In all", "Mean", "Longest"],
      [...sums]
        .sort(([, a], [, b]) => b.total - a.total)
        .map(([key, sum]) => [
          ...key.split("\n"),
          sum.count,
          microseconds(sum.total),
          microseconds(sum.total / sum.count),
          microseconds(sum.most),
        ]),
    ),
  );
  return parts;
}
