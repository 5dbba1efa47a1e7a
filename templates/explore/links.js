// Which lines of one text belong to a line of another one.
"use strict";

function originsOf(packed) {
  return packed ? packed.split(" ").map((one) => one.split(":").map(Number)) : [];
}

// For a text: from "TEXT:LINE" to the lines that come from there; and the texts among these.
const inverseOf = remembered(async (index) => {
  const { origins } = await textOf(index);
  const lines = new Map();
  const parents = new Set();
  origins.forEach((packed, i) => {
    if (!packed) return;
    for (const one of packed.split(" ")) {
      if (!lines.has(one)) {
        lines.set(one, []);
        parents.add(Number(one.split(":")[0]));
      }
      lines.get(one).push(i + 1);
    }
  });
  return { lines, parents };
});

// The lines of each text in `shown` that belong to line `line` of text `index`, as a Map of Sets,
// and the line's ancestors in the same form.
//
// Ancestors are what the line comes from, step by step to the input. In a text that is no ancestor,
// those lines belong to it that come from the nearest ancestor.
async function linked(index, line, shown) {
  const above = new Map([[index, new Set([line])]]);
  const pending = [[index, line]];
  while (pending.length) {
    const [text, number] = pending.pop();
    for (const [parent, origin] of originsOf((await textOf(text)).origins[number - 1])) {
      if (!above.has(parent)) above.set(parent, new Set());
      if (!above.get(parent).has(origin)) {
        above.get(parent).add(origin);
        pending.push([parent, origin]);
      }
    }
  }
  const below = new Map();
  async function belonging(text) {
    if (above.has(text)) return above.get(text);
    if (below.has(text)) return below.get(text);
    const found = new Set();
    below.set(text, found);
    const { lines, parents } = await inverseOf(text);
    for (const parent of parents) {
      for (const origin of await belonging(parent)) {
        for (const one of lines.get(`${parent}:${origin}`) ?? []) found.add(one);
      }
    }
    return found;
  }
  const result = new Map();
  for (const text of shown) result.set(text, text === index ? await siblings(index, line) : await belonging(text));
  return { result, above };
}

// As `linked`, of the line or, if nothing in the other texts belongs to it, of the nearest line
// around it (one that is indented less) that has something; and which line that is.
async function linkedAround(index, line, shown) {
  const { lines } = await textOf(index);
  const indentOf = (one) => lines[one - 1].search(/\S/);
  for (let one = line; one > 0; ) {
    const { result, above } = await linked(index, one, shown);
    if (above.size > 1 || [...result].some(([text, found]) => text !== index && found.size)) return { result, above, line: one };
    const indent = indentOf(one);
    do one--;
    while (one > 0 && (indentOf(one) < 0 || indentOf(one) >= indent));
  }
  return { ...(await linked(index, line, shown)), line };
}

// The lines of the same text that come from the same place, and the line itself.
async function siblings(index, line) {
  const { origins } = await textOf(index);
  const { lines } = await inverseOf(index);
  const found = new Set([line]);
  for (const origin of origins[line - 1] ? origins[line - 1].split(" ") : []) {
    for (const one of lines.get(origin)) found.add(one);
  }
  return found;
}
