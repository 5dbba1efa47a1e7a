// The page: what is shown, the keys, and the address, which says it all.
"use strict";

const VIEWS = ["code", "kernel", "memory", "build", "run"];
const byId = (id) => document.getElementById(id);

const page = {
  view: "code",
  columns: [],
  kernel: 0,
  chosen: null, // { index, line }
  isComparing: false,

  get unit() {
    return facts.kernels[this.kernel]?.unit ?? "";
  },

  // --- Views -----------------------------------------------------------------------------------

  async show(view) {
    this.view = view;
    for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== `view-${view}`;
    for (const button of document.querySelectorAll("nav [data-view]")) {
      button.setAttribute("aria-pressed", String(button.dataset.view === view));
    }
    const kernel = facts.kernels[this.kernel];
    const content = {
      kernel: async () => (kernel ? kernelView(kernel) : [element("p", {}, "The module has no kernel.")]),
      memory: memoryView,
      build: buildView,
      run: runView,
    }[view];
    if (content) byId(`view-${view}`).replaceChildren(...(await content()));
    this.note();
  },

  async search(words) {
    if (!words) return;
    byId("view-search").replaceChildren(...(await searchView(words)));
    await this.show("search");
    byId("view-search").querySelector("button.link")?.focus();
  },

  // --- Kernels ---------------------------------------------------------------------------------

  listKernels() {
    const wanted = byId("kernel-filter").value.toLowerCase();
    const shown = facts.kernels
      .map((kernel, number) => [kernel, number])
      .filter(([kernel]) => kernel.name.toLowerCase().includes(wanted));
    byId("kernel-count").textContent =
      shown.length === facts.kernels.length ? `(${shown.length})` : `(${shown.length} of ${facts.kernels.length})`;
    byId("kernels").replaceChildren(
      ...shown.map(([kernel, number]) => {
        const attributes = { type: "button", "data-kernel": number, "aria-current": String(number === this.kernel) };
        return element("li", {}, element("button", attributes, [element("strong", {}, kernel.name), " ", kernelWords(kernel)]));
      }),
    );
  },

  async choose(number) {
    const before = this.unit;
    this.kernel = number;
    for (const button of byId("kernels").querySelectorAll("button")) {
      button.setAttribute("aria-current", String(Number(button.dataset.kernel) === number));
    }
    if (this.unit !== before) await this.follow(before);
    await this.show("kernel");
  },

  // Columns that showed another gpu.module show this one at the same stage.
  async follow(before) {
    for (const column of this.columns) {
      const text = facts.texts[column.index];
      column.offer(textsOf(this.unit));
      if (text.unit !== before || !text.unit) continue;
      const { stage, chip, is_final } = text;
      let next = findText({ stage, chip, is_final, unit: this.unit });
      if (next < 0) next = findText({ stage: "mlir", is_final: true });
      await column.show(next);
    }
  },

  // --- Columns ---------------------------------------------------------------------------------

  async addColumn(index) {
    const column = new Column({
      told: (one, line) => this.choice(one, line),
      changed: (one, next) => this.change(one, next),
      closed: (one) => this.closeColumn(one),
    });
    this.columns.push(column);
    byId("columns").append(column.root);
    column.offer(textsOf(this.unit));
    await column.show(index);
    this.columnsChanged();
    return column;
  },

  closeColumn(column) {
    this.columns = this.columns.filter((one) => one !== column);
    column.view.destroy();
    column.root.remove();
    this.columnsChanged();
  },

  columnsChanged() {
    byId("columns").style.setProperty("--columns", this.columns.length);
    for (const column of this.columns) column.close.hidden = this.columns.length === 1;
    this.note();
  },

  async change(column, index) {
    await column.show(index);
    if (this.chosen) await this.light(null);
    if (this.isComparing) await this.compare(true);
    this.note();
  },

  // A line was chosen in a column.
  async choice(column, line) {
    this.chosen = { index: column.index, line };
    this.note();
    await this.light(column);
  },

  // Lights up what belongs to the chosen line; all columns but `source` show it.
  async light(source) {
    const { index, line } = this.chosen;
    const shown = new Set(this.columns.map((column) => column.index));
    const { result, above, line: around } = await linkedAround(index, line, shown);
    if (this.chosen.index !== index || this.chosen.line !== line) return;
    for (const column of this.columns) column.light(result.get(column.index) ?? [], column !== source);
    const chain = [...above]
      .filter(([text]) => text !== index)
      .sort(([a], [b]) => b - a)
      .map(([text, lines]) => `${titleOf(facts.texts[text])} ${lineWords(lines)}`);
    const own = `${titleOf(facts.texts[index])} line ${line}${around === line ? "" : ` (with line ${around}, around it)`}`;
    byId("status").textContent = chain.length ? `${own} comes from ${chain.join(", from ")}.` : `${own}.`;
  },

  // Shows a line of a text: in the column that has the text, or in the last one.
  async goTo(index, line) {
    const { unit } = facts.texts[index];
    if (unit && unit !== this.unit) {
      this.kernel = facts.kernels.findIndex((kernel) => kernel.unit === unit);
      for (const column of this.columns) column.offer(textsOf(unit));
      this.listKernels();
    }
    if (this.isComparing) await this.compare(false);
    await this.show("code");
    let column = this.columns.find((one) => one.index === index);
    if (!column) {
      column = this.columns[this.columns.length - 1];
      await column.show(index);
    }
    column.go(line, { quiet: true });
    column.view.focus();
    await this.choice(column, line);
  },

  // --- Comparing -------------------------------------------------------------------------------

  async compare(isOn) {
    if (isOn && this.columns.length < 2) await this.addColumn(this.columns[0].index);
    this.isComparing = isOn;
    byId("diff").checked = isOn;
    byId("compared").hidden = !isOn;
    byId("columns").classList.toggle("folded", isOn);
    byId("numbers-label").hidden = !isOn;
    byId("change-next").hidden = !isOn;
    byId("compared").replaceChildren();
    if (isOn) {
      const [first, second] = this.columns;
      this.compared = await comparison(byId("compared"), first.index, second.index, byId("ignore-numbers").checked);
    }
    this.note();
  },

  // --- Theme -----------------------------------------------------------------------------------

  get isDark() {
    const { theme } = document.documentElement.dataset;
    return theme ? theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  },

  async setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
    try {
      localStorage.setItem("aotc-theme", theme);
    } catch {
      // A page in a file may have no storage.
    }
  },

  // --- The address -----------------------------------------------------------------------------

  // Writes down what is shown: the address is a link to it.
  note() {
    if (!this.isReady) return;
    const words = [`columns=${this.columns.map((column) => column.index).join(",")}`];
    if (this.chosen) words.push(`line=${this.chosen.index}:${this.chosen.line}`);
    if (this.kernel > 0) words.push(`kernel=${this.kernel}`);
    if (this.view !== "code") words.push(`view=${this.view}`);
    if (this.isComparing) words.push("compare");
    history.replaceState(null, "", `#${words.join("&")}`);
  },

  // Shows what the address says, as far as the page has it.
  async read() {
    const words = new URLSearchParams(location.hash.slice(1));
    const isText = (index) => Number.isInteger(index) && index >= 0 && index < facts.texts.length;
    const kernel = Number(words.get("kernel") ?? 0);
    this.kernel = facts.kernels[kernel] ? kernel : 0;
    this.listKernels();
    let wanted = (words.get("columns") || "none").split(",").map(Number).filter(isText).slice(0, 6);
    if (!wanted.length) wanted = this.firstColumns();
    while (this.columns.length > wanted.length) this.closeColumn(this.columns[this.columns.length - 1]);
    for (const [number, index] of wanted.entries()) {
      if (!this.columns[number]) await this.addColumn(index);
      this.columns[number].offer(textsOf(this.unit));
      if (this.columns[number].index !== index) await this.columns[number].show(index);
    }
    const [index, line] = (words.get("line") ?? "").split(":").map(Number);
    await this.compare(words.has("compare"));
    if (isText(index) && line > 0 && line <= facts.texts[index].count) await this.goTo(index, line);
    const view = words.get("view");
    await this.show(VIEWS.includes(view) ? view : "code");
  },

  // The input, and what it is in the end.
  firstColumns() {
    const input = findText({ stage: "input" });
    const unit = this.unit;
    const last = ["sass", "ptx"].map((stage) => findText({ stage, unit })).find((one) => one >= 0);
    return [Math.max(input, 0), last ?? findText({ stage: "mlir", is_final: true })].filter((one) => one >= 0);
  },
};

function kernelWords(kernel) {
  const words = [];
  const [first] = kernel.launches;
  if (first) words.push(`grid ${sizeText(first.grid)}, block ${sizeText(first.block)}`);
  const registers = [...new Set(kernel.on_chips.map((one) => one.needs.registers))];
  if (registers.length) words.push(`${registers.join("/")} registers`);
  if (kernel.on_chips.some((one) => one.needs.spill_stores + one.needs.spill_loads)) words.push("spills");
  words.push(kernel.built_for.join(", ") || "CPU");
  return element("small", {}, words.join(" · "));
}

function lineWords(lines) {
  const sorted = [...lines].sort((a, b) => a - b);
  const shown = sorted.slice(0, 4).join(", ");
  return `${sorted.length > 1 ? "lines" : "line"} ${shown}${sorted.length > 4 ? ", …" : ""}`;
}

function listen() {
  for (const button of document.querySelectorAll("nav [data-view]")) {
    button.addEventListener("click", () => page.show(button.dataset.view));
  }
  byId("kernels").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) page.choose(Number(button.dataset.kernel));
  });
  byId("kernel-filter").addEventListener("input", () => page.listKernels());
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    page.search(byId("search-text").value.trim());
  });
  byId("column-add").addEventListener("click", () => page.addColumn(page.columns[page.columns.length - 1].index));
  byId("diff").addEventListener("change", (event) => page.compare(event.target.checked));
  byId("ignore-numbers").addEventListener("change", () => page.compare(true));
  byId("change-next").addEventListener("click", () => CodeMirror.goToNextChunk(page.compared));
  byId("link-copy").addEventListener("click", async () => {
    const done = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    byId("status").textContent = done ? "The link is on the clipboard." : `The link is in the address: ${location.hash}`;
  });
  byId("theme").addEventListener("click", () => page.setTheme(page.isDark ? "light" : "dark"));
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  window.addEventListener("hashchange", () => page.read());
  document.addEventListener("keydown", pressed, { capture: true });
}

// Single keys, wherever the focus is but in a field.
function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (event.target.closest("input, select, textarea")) return;
  const column = page.columns.find((one) => one.root.contains(document.activeElement)) ?? page.columns[0];
  const actions = {
    "/": () => byId("search-text").focus(),
    "?": () => byId("help").showModal(),
    t: () => byId("theme").click(),
    d: () => page.compare(!page.isComparing),
    n: () => column.goLit(1),
    p: () => column.goLit(-1),
    "[": () => column.step(-1),
    "]": () => column.step(1),
    ...Object.fromEntries(VIEWS.map((view, i) => [String(i + 1), () => page.show(view)])),
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}

async function start() {
  facts = JSON.parse(await unpack("facts"));
  let theme = null;
  try {
    theme = localStorage.getItem("aotc-theme");
  } catch {
    // As above.
  }
  if (theme) document.documentElement.dataset.theme = theme;
  byId("theme").textContent = page.isDark ? "Light" : "Dark";
  byId("title").textContent = facts.title;
  byId("subtitle").textContent = [facts.chips, facts.target, `aotc ${facts.aotc}`].filter(Boolean).join(" · ");
  if (window.innerWidth < 700) byId("kernels-fold").open = false;
  listen();
  await page.read();
  page.isReady = true;
  document.documentElement.dataset.ready = "";
}

start();
