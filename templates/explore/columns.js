// The columns of texts: editors that are only read, whose lines light up together.
"use strict";

const { EditorState, EditorView, Decoration, StateEffect, StateField, tags } = CodeMirror;

const setLit = StateEffect.define();
const LIT = Decoration.line({ class: "lit" });
const litLines = StateField.define({
  create: () => Decoration.none,
  update(lit, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(setLit)) continue;
      const builder = new CodeMirror.RangeSetBuilder();
      for (const line of [...effect.value].sort((a, b) => a - b)) {
        if (line > transaction.state.doc.lines) break;
        const { from } = transaction.state.doc.line(line);
        builder.add(from, from, LIT);
      }
      lit = builder.finish();
    }
    return lit;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const COLORS = CodeMirror.HighlightStyle.define([
  { tag: tags.comment, color: "var(--comment)" },
  { tag: tags.string, color: "var(--string)" },
  { tag: tags.number, color: "var(--number)" },
  { tag: tags.keyword, color: "var(--keyword)" },
  { tag: tags.typeName, color: "var(--type)" },
  { tag: tags.variableName, color: "var(--variable)" },
  { tag: tags.labelName, color: "var(--label)" },
]);

// What every editor of a text has.
function editorOf(text) {
  return [
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({
      "aria-label": `${text.title}, ${text.count} lines`,
      "aria-readonly": "true",
      inputmode: "none",
      spellcheck: "false",
      autocorrect: "off",
      autocapitalize: "off",
    }),
    CodeMirror.lineNumbers(),
    CodeMirror.highlightActiveLine(),
    CodeMirror.highlightActiveLineGutter(),
    CodeMirror.search({ top: true }),
    CodeMirror.keymap.of([...CodeMirror.searchKeymap, ...CodeMirror.defaultKeymap]),
    LANGUAGES[text.language] ?? [],
    CodeMirror.syntaxHighlighting(COLORS),
    EditorView.theme({}, { dark: page.isDark }),
  ];
}

const GROUPS = {
  input: "Input",
  mlir: "The module, after passes",
  "device-mlir": "For the GPU: MLIR, after passes",
  "device-ll": "For the GPU: LLVM IR",
  ptx: "For the GPU: PTX",
  sass: "For the GPU: machine code",
  "cpu-mlir": "For the CPU: kernels, after passes",
  "host-mlir": "For the host: MLIR, after passes",
  "host-ll": "For the host: LLVM IR",
};

const FINAL_TITLES = {
  mlir: "outlined",
  "device-mlir": "LLVM dialect",
  "device-ll": "LLVM IR",
  "cpu-mlir": "CPU form",
  "host-mlir": "LLVM dialect",
  "host-ll": "LLVM IR",
};

// What people call a text.
function titleOf(text) {
  if (!text.is_final) return `after ${text.title}`;
  return FINAL_TITLES[text.stage] ?? text.title;
}

// One column: the select of its text, what there is to say of it, and the editor.
//
// `told` is called with the column and a line when one is chosen; `changed` when the column shows
// another text; `closed` when it is not wanted any more.
class Column {
  constructor({ told, changed, closed }) {
    this.told = told;
    this.changed = changed;
    this.lit = [];
    this.index = -1;
    this.select = element("select", { "aria-label": "Stage" });
    this.select.addEventListener("change", () => this.changed(this, Number(this.select.value)));
    const step = (by, label, sign) =>
      element("button", { type: "button", "aria-label": label, title: label, onclick: () => this.step(by) }, sign);
    this.close = element(
      "button",
      { type: "button", "aria-label": "Close the column", title: "Close", onclick: () => closed(this) },
      "×",
    );
    this.about = element("p", { class: "about" });
    this.body = element("div", { class: "editor" });
    this.root = element("section", { class: "column", "aria-label": "Column" }, [
      element("div", { class: "bar" }, [
        step(-1, "Previous stage", "‹"),
        this.select,
        step(1, "Next stage", "›"),
        this.close,
      ]),
      this.about,
      this.body,
    ]);
  }

  // Fills the select with the texts of a gpu.module.
  offer(texts) {
    this.offered = texts;
    const groups = new Map();
    for (const text of texts) {
      if (!groups.has(text.stage)) {
        groups.set(text.stage, element("optgroup", { label: GROUPS[text.stage] ?? text.stage }));
      }
      groups.get(text.stage).append(element("option", { value: text.index }, `${text.index}. ${titleOf(text)}`));
    }
    this.select.replaceChildren(...groups.values());
    this.select.value = this.index;
  }

  step(by) {
    const at = this.offered.findIndex((text) => text.index === this.index);
    const next = this.offered[at + by];
    if (next) this.changed(this, next.index);
  }

  async show(index) {
    this.index = index;
    this.select.value = index;
    const text = facts.texts[index];
    const { lines } = await textOf(index);
    if (this.index !== index) return; // it was changed meanwhile
    this.about.textContent = [
      text.reason,
      text.seconds === null ? "" : `${(1000 * text.seconds).toFixed(1)} ms`,
      `${text.count.toLocaleString("en")} lines`,
      bytesText(text.bytes),
    ]
      .filter(Boolean)
      .join(" · ");
    this.view?.destroy();
    this.quiet = true;
    this.view = new EditorView({
      doc: CodeMirror.Text.of(lines),
      extensions: [
        editorOf(text),
        litLines,
        EditorView.updateListener.of((update) => {
          if (update.selectionSet && !this.quiet) this.told(this, this.line);
        }),
      ],
      parent: this.body,
    });
    this.quiet = false;
    this.lit = [];
    this.root.setAttribute("aria-label", `Column: ${titleOf(text)}`);
  }

  // The line of the cursor.
  get line() {
    const { state } = this.view;
    return state.doc.lineAt(state.selection.main.head).number;
  }

  // Lights lines up; `scroll` shows the first one, if none of them is to be seen.
  light(lines, scroll) {
    this.lit = [...lines].sort((a, b) => a - b);
    const effects = [setLit.of(this.lit)];
    if (scroll && this.lit.length && !this.lit.some((line) => this.sees(line))) {
      effects.push(this.scrolled(this.lit[0]));
    }
    this.view.dispatch({ effects });
  }

  sees(line) {
    const { doc } = this.view.state;
    const { top, bottom } = this.view.scrollDOM.getBoundingClientRect();
    const block = this.view.lineBlockAt(doc.line(Math.min(line, doc.lines)).from);
    const at = this.view.documentTop + block.top;
    return at >= top && at + block.height <= bottom;
  }

  scrolled(line) {
    const { doc } = this.view.state;
    return EditorView.scrollIntoView(doc.line(Math.min(line, doc.lines)).from, { y: "center" });
  }

  // Moves the cursor to a line, and shows it.
  go(line, { quiet = false } = {}) {
    const { doc } = this.view.state;
    const { from } = doc.line(Math.min(Math.max(line, 1), doc.lines));
    this.quiet = quiet;
    this.view.dispatch({ selection: { anchor: from }, effects: this.scrolled(line) });
    this.quiet = false;
  }

  // To the next line that is lit, or the one before.
  goLit(by) {
    const now = this.line;
    const next =
      by > 0 ? this.lit.find((line) => line > now) : this.lit.findLast((line) => line < now);
    if (next) this.go(next, { quiet: true });
  }
}

// A text for comparing: value numbers change with every pass that adds an operation.
function forComparing(lines, ignoresNumbers) {
  const text = lines.join("\n");
  return ignoresNumbers ? text.replace(/%(?:arg)?\d+(?:_\d+)?/g, "%_") : text;
}

// What changed between two texts: side by side or, where there is no room, one under the other.
async function comparison(parent, first, second, ignoresNumbers) {
  const [a, b] = await Promise.all([textOf(first), textOf(second)]);
  const [before, after] = [a, b].map(({ lines }) => forComparing(lines, ignoresNumbers));
  const collapseUnchanged = { margin: 3, minSize: 6 };
  const diffConfig = { scanLimit: 2000, timeout: 1000 };
  parent.replaceChildren();
  if (window.innerWidth < 700) {
    const extensions = [
      editorOf(facts.texts[second]),
      CodeMirror.unifiedMergeView({
        original: before,
        mergeControls: false,
        collapseUnchanged,
        diffConfig,
      }),
    ];
    return new EditorView({ doc: after, extensions, parent });
  }
  const view = new CodeMirror.MergeView({
    a: { doc: before, extensions: editorOf(facts.texts[first]) },
    b: { doc: after, extensions: editorOf(facts.texts[second]) },
    gutter: true,
    collapseUnchanged,
    diffConfig,
    parent,
  });
  return view.b;
}
