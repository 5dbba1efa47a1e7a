// The words of MLIR, LLVM IR, PTX and SASS, for CodeMirror: a line at a time, without state.
"use strict";

function language(rules) {
  return CodeMirror.StreamLanguage.define({
    startState: () => null,
    token(stream) {
      for (const [pattern, style] of rules) {
        if (stream.match(pattern)) return style;
      }
      stream.next();
      return null;
    },
  });
}

const NUMBER = /^-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\b/;
const STRING = /^"(?:[^"\\]|\\.)*"?/;
const SPACE = /^\s+/;

const LANGUAGES = {
  mlir: language([
    [SPACE, null],
    [/^\/\/.*/, "comment"],
    [STRING, "string"],
    [/^@[\w$.-]+|^@"[^"]*"/, "labelName"],
    [/^%[\w$.#-]+(?::\d+)?/, "variableName"],
    [/^\^\w+/, "labelName"],
    [/^[#!][a-zA-Z_][\w.$-]*/, "typeName"],
    [/^(?:\d+x|\?x)*(?:index|none|(?:u|s)?i\d+|b?f\d+\w*|tf32)\b/, "typeName"],
    [/^(?:memref|tensor|vector|complex|tuple)\b/, "typeName"],
    [/^[a-zA-Z_]\w*(?:\.[\w$]+)+/, "keyword"],
    [NUMBER, "number"],
    [/^(?:return|module|func|attributes|loc|true|false|unit|dense|affine_map)\b/, "keyword"],
    [/^[\w$.]+/, null],
  ]),
  llvm: language([
    [SPACE, null],
    [/^;.*/, "comment"],
    [STRING, "string"],
    [/^@[\w$.-]+|^@"[^"]*"/, "labelName"],
    [/^%[\w$.-]+/, "variableName"],
    [/^![\w.]*/, "comment"],
    [/^#\d+/, "comment"],
    [/^[\w.$-]+:/, "labelName"],
    [/^(?:void|ptr|i\d+|half|bfloat|float|double|label|metadata|x)\b/, "typeName"],
    [NUMBER, "number"],
    [/^[a-z_][\w.]*/, "keyword"],
    [/^\w+/, null],
  ]),
  ptx: language([
    [SPACE, null],
    [/^\/\/.*/, "comment"],
    [STRING, "string"],
    [/^\.[a-z]\w*/, "typeName"],
    [/^[%$][\w$.]+/, "variableName"],
    [/^@!?%\w+/, "variableName"],
    [/^0[fFdD][0-9a-fA-F]+\b/, "number"],
    [NUMBER, "number"],
    [/^[a-z]\w*(?:\.\w+)*(?::\w+)*(?:\.\w+)*/, "keyword"],
    [/^[\w$]+/, null],
  ]),
  sass: language([
    [SPACE, null],
    [/^\/\*.*?\*\//, "comment"],
    [/^\/\/.*/, "comment"],
    [STRING, "string"],
    [/^\.L?[\w.$]+:?/, "labelName"],
    [/^@!?U?P\w+/, "variableName"],
    [/^(?:U?R\d+|U?RZ|U?P\d|U?PT|SR_[\w.]+|c\[)/, "variableName"],
    [NUMBER, "number"],
    [/^[A-Z][A-Z0-9_]*(?:\.[\w.]+)?/, "keyword"],
    [/^\w+/, null],
  ]),
  text: [],
};
