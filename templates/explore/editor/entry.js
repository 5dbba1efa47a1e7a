// What the page uses of CodeMirror: `make explore-editor` bundles it into codemirror.js.
export {EditorState, StateField, StateEffect, RangeSetBuilder, Text} from "@codemirror/state";
export {EditorView, keymap, lineNumbers, Decoration, highlightActiveLine, highlightActiveLineGutter} from "@codemirror/view";
export {search, searchKeymap} from "@codemirror/search";
export {defaultKeymap} from "@codemirror/commands";
export {StreamLanguage, HighlightStyle, syntaxHighlighting} from "@codemirror/language";
export {tags} from "@lezer/highlight";
export {MergeView, unifiedMergeView, goToNextChunk} from "@codemirror/merge";
