// The views of facts: a kernel, the memory, the build, search results.
"use strict";

function element(name, attributes = {}, content = []) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...(Array.isArray(content) ? content : [content]));
  return made;
}

function bytesText(bytes) {
  if (bytes < 10000) return `${bytes} bytes`;
  return bytes < 10e6 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;
}

// A table whose rows are arrays of texts or nodes; numbers stand to the right.
function table(caption, head, rows) {
  const cell = (content, i) => {
    const isNumber = typeof content === "number";
    const attributes = { "data-label": head[i], class: isNumber ? "number" : "" };
    return element("td", attributes, isNumber ? content.toLocaleString("en") : content ?? "–");
  };
  const made = element("table", {}, [
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, head.map((one) => element("th", { scope: "col" }, one)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell)))),
  ]);
  return element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption }, made);
}

function pairs(rows) {
  return element(
    "dl",
    { class: "pairs" },
    rows.filter(([, value]) => value !== "").flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
  );
}

// A button that shows a line of a text.
function lineLink(index, line, words) {
  if (index < 0 || !line) return words;
  return element("button", { type: "button", class: "link", onclick: () => page.goTo(index, line) }, words);
}

function inputLink(line, words) {
  return lineLink(findText({ stage: "input" }), line, words);
}

function sizeText(sizes) {
  return sizes.map((size) => size ?? "?").join(" × ");
}

async function kernelView(kernel) {
  const outlined = findText({ stage: "mlir", is_final: true });
  const places = new Set();
  if (outlined >= 0) {
    const { origins } = await textOf(outlined);
    const lines = [kernel.line, ...kernel.launches.map((launch) => launch.line)];
    for (const line of lines) for (const [, origin] of originsOf(origins[(line ?? 0) - 1] ?? "")) places.add(origin);
  }
  const from = [...places].sort((a, b) => a - b).map((line) => inputLink(line, `line ${line}`));
  const target = { cpu: "the CPU alone", gpu: "any GPU", "": "any GPU, and the CPU" }[kernel.target] ?? kernel.target;
  const parts = [
    element("h2", {}, kernel.name),
    pairs([
      ["From", from.length ? spaced(from) : "no line of the input"],
      ["Launched on", kernel.why_no_cpu_form === null && kernel.target === "" ? "any GPU, and the CPU" : target],
      ["Built for", kernel.built_for.join(", ")],
      ["On the CPU", kernel.why_no_cpu_form ?? "has a form of its own"],
      ["gpu.module", kernel.unit],
    ]),
    element("p", { class: "bar" }, await kernelLinks(kernel, outlined)),
    table(
      "Launches",
      ["Function", "Line", "Grid", "Block", "Cluster", "Dynamic shared memory"],
      kernel.launches.map((launch) => [
        launch.function,
        lineLink(outlined, launch.line, `outlined ${launch.line}`),
        sizeText(launch.grid),
        sizeText(launch.block),
        launch.cluster.length ? sizeText(launch.cluster) : "–",
        launch.shared_bytes === null ? "computed" : bytesText(launch.shared_bytes),
      ]),
    ),
  ];
  if (kernel.on_chips.length) {
    parts.push(
      table(
        "On each chip",
        ["Chip", "Registers", "Static shared memory", "Stack", "Spills stored + loaded", "Occupancy", "Limited by"],
        kernel.on_chips.map(({ needs, ...one }) => [
          needs.chip,
          needs.registers,
          bytesText(needs.shared_bytes),
          bytesText(needs.stack_bytes),
          needs.spill_stores + needs.spill_loads ? `${needs.spill_stores} + ${needs.spill_loads} bytes` : "none",
          one.warps === null
            ? "block size computed"
            : `${Math.round((100 * one.warps) / one.most_warps)} %: ${one.blocks} blocks, ${one.warps} of ${one.most_warps} warps`,
          one.limited_by.join(", "),
        ]),
      ),
    );
  }
  const images = facts.images.filter((image) => image.unit === kernel.unit);
  if (images.length) {
    parts.push(
      table(
        "Images of its gpu.module",
        ["Kind", "Chip", "Size"],
        images.map((image) => [image.kind, image.chip || "all", bytesText(image.bytes)]),
      ),
    );
  }
  if (kernel.choice !== null) parts.push(...matmulParts(facts.matmuls[kernel.choice], kernel.name));
  return parts;
}

function spaced(nodes) {
  return nodes.flatMap((node, i) => (i ? [" ", node] : [node]));
}

// Buttons to where a kernel begins in each of the texts that have it.
async function kernelLinks(kernel, outlined) {
  const links = [];
  if (outlined >= 0 && kernel.line) links.push(lineLink(outlined, kernel.line, "outlined"));
  const quoted = kernel.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const begins = {
    mlir: new RegExp(`\\b(?:gpu|llvm)\\.func @"?${quoted}"?\\(`),
    llvm: new RegExp(`^define .*@"?${quoted}"?\\(`),
    ptx: new RegExp(`\\.entry ${quoted}\\(`),
    sass: new RegExp(`^\\.text\\.${quoted}:`),
  };
  for (const text of textsOf(kernel.unit)) {
    if (!text.unit || !text.is_final) continue;
    const { lines } = await textOf(text.index);
    const at = lines.findIndex((line) => begins[text.language]?.test(line));
    if (at >= 0) links.push(lineLink(text.index, at + 1, titleOf(text)));
  }
  return links;
}

function matmulParts(matmul, name) {
  const parts = [
    element("h3", {}, "Why this kernel"),
    pairs([
      ["Matmul", inputLink(matmul.line, matmul.place || "of the input")],
      ["M × N × K", sizeText(matmul.sizes)],
      ["Kernels", matmul.text],
    ]),
    element(
      "ol",
      {},
      matmul.choices.map((choice) =>
        element("li", name.startsWith(choice.kernel) ? { class: "taken" } : {}, [
          element("code", {}, choice.kernel),
          ` ${choice.reason.replace(/^\d+\. /, "")}`,
        ]),
      ),
    ),
  ];
  // A name may begin with another one's.
  const own = matmul.choices.filter((choice) => name.startsWith(choice.kernel));
  const choice = own.reduce((best, one) => (!best || one.kernel.length > best.kernel.length ? one : best), null);
  for (const one of choice?.candidates ?? []) {
    parts.push(
      table(
        `Rivals on ${one.chip}: the first of ${one.count}, by expected clocks of a multiprocessor`,
        ["Variant", "", "Expected clocks", ""],
        one.rivals.map((rival) => [
          element("code", {}, rival.name),
          rival.words,
          rival.clocks,
          rival.is_taken ? "taken" : "",
        ]),
      ),
    );
  }
  return parts;
}

function memoryView() {
  const outlined = findText({ stage: "mlir", is_final: true });
  const parts = [
    element("h2", {}, "Memory"),
    table(
      "Buffers",
      ["Function", "Buffer", "Type", "Where it is", "Why, and when it is copied"],
      facts.buffers.map((buffer) => [
        buffer.function,
        buffer.name || inputLink(buffer.line, buffer.place || "made by aotc"),
        element("code", {}, buffer.type),
        buffer.memory,
        buffer.reason,
      ]),
    ),
  ];
  if (facts.copies.length) {
    parts.push(
      table(
        "Copies that host code makes",
        ["Function", "Line", "Type", "From", "To", "When"],
        facts.copies.map((copy) => [
          copy.function,
          lineLink(outlined, copy.line, `outlined ${copy.line}`),
          element("code", {}, copy.type),
          copy.source,
          copy.target,
          whenText(copy.around),
        ]),
      ),
    );
  } else {
    parts.push(element("p", {}, "Host code makes no copy between host and device."));
  }
  return parts;
}

function whenText(around) {
  const loops = around.filter((name) => /for|while|parallel/.test(name)).length;
  const isGuarded = around.includes("scf.if");
  const words = [];
  if (isGuarded) words.push("if the other side has written");
  if (loops) words.push(loops > 1 ? `in ${loops} loops` : "in a loop");
  return words.join(", ") || "always";
}

function buildView() {
  const passes = facts.texts.map((text, index) => ({ ...text, index })).filter((text) => !text.is_final);
  return [
    element("h2", {}, "Build"),
    ...facts.notes.map((note) => element("p", { class: "note" }, note)),
    pairs([
      ["aotc", facts.aotc],
      ["Host", facts.target],
      ["Chips", facts.chips || "none"],
      ...facts.tools,
    ]),
    table(
      "Decisions",
      ["Pass", "Place", "Decision"],
      facts.decisions.map((one) => [one.step, inputLink(one.line, one.place), one.text]),
    ),
    table(
      "Passes that changed something",
      ["Pass", "Stage", "gpu.module", "Reason", "ms", "Lines"],
      passes.map((text) => [
        lineLink(text.index, 1, text.title),
        text.stage,
        text.unit,
        text.reason,
        Number((1000 * text.seconds).toFixed(1)),
        text.count,
      ]),
    ),
    table(
      "Stages",
      ["Stage", "ms"],
      facts.stages.map(([name, seconds]) => [name, Number((1000 * seconds).toFixed(1))]),
    ),
  ];
}

async function searchView(words) {
  const most = 500;
  const found = await findLines(words, most);
  const rows = [];
  for (const [index, line] of found) {
    const text = facts.texts[index];
    const { lines } = await textOf(index);
    rows.push([
      lineLink(index, line, `${GROUPS[text.stage] ?? text.stage}: ${titleOf(text)}`),
      line,
      element("code", {}, lines[line - 1].trim().slice(0, 200)),
    ]);
  }
  const count = found.length < most ? `${found.length}` : `the first ${most}`;
  return [element("h2", {}, "Search"), table(`“${words}”: ${count} lines`, ["Stage", "Line", "Text"], rows)];
}
