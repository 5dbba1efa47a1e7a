// The page's data: `facts`, and the lines of texts, which are decompressed when they are needed.
"use strict";

let facts;

// The content of the script element `id`: text that was deflated, in base64.
async function unpack(id) {
  const packed = document.getElementById(id).textContent;
  const bytes = Uint8Array.fromBase64
    ? Uint8Array.fromBase64(packed)
    : Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

function remembered(load) {
  const known = new Map();
  return (key) => {
    if (!known.has(key)) known.set(key, load(key));
    return known.get(key);
  };
}

// A part of the table of lines: their texts and, apart, where they come from, as "TEXT:LINE ...".
const chunkOf = remembered(async (number) => {
  const rows = (await unpack(`lines-${number}`)).split("\n");
  const texts = new Array(rows.length);
  const origins = new Array(rows.length);
  rows.forEach((row, i) => {
    const mark = row.lastIndexOf("\x1f");
    texts[i] = row.slice(0, mark);
    origins[i] = row.slice(mark + 1);
  });
  return { texts, origins };
});

// The lines of a text, as their numbers in the table.
const numbersOf = remembered(async (index) => {
  const runs = JSON.parse(await unpack(`text-${index}`));
  const numbers = new Int32Array(facts.texts[index].count);
  let at = 0;
  for (let i = 0; i < runs.length; i += 2) {
    for (let j = 0; j < runs[i + 1]; j++) numbers[at++] = runs[i] + j;
  }
  return numbers;
});

// { lines, origins } of a text: both have an element for each line.
const textOf = remembered(async (index) => {
  const numbers = await numbersOf(index);
  const needed = new Set(numbers.map((number) => Math.floor(number / facts.chunk)));
  const chunks = new Map();
  await Promise.all([...needed].map(async (one) => chunks.set(one, await chunkOf(one))));
  const lines = new Array(numbers.length);
  const origins = new Array(numbers.length);
  numbers.forEach((number, i) => {
    const chunk = chunks.get(Math.floor(number / facts.chunk));
    lines[i] = chunk.texts[number % facts.chunk];
    origins[i] = chunk.origins[number % facts.chunk];
  });
  return { lines, origins };
});

// The texts that are for all, or for one gpu.module.
function textsOf(unit) {
  return facts.texts.map((text, index) => ({ ...text, index })).filter((text) => !text.unit || text.unit === unit);
}

// The index of the last text that has these properties; -1 if there is none.
function findText(wanted) {
  return facts.texts.findLastIndex((text) => Object.entries(wanted).every(([name, value]) => text[name] === value));
}

// [[TEXT, LINE], ...] of the lines of all texts that contain `words`, at most `most` of them.
async function findLines(words, most) {
  const wanted = words.toLowerCase();
  const matching = new Set();
  for (let number = 0; document.getElementById(`lines-${number}`); number++) {
    (await chunkOf(number)).texts.forEach((text, i) => {
      if (text.toLowerCase().includes(wanted)) matching.add(number * facts.chunk + i);
    });
  }
  const found = [];
  for (let index = 0; index < facts.texts.length && found.length < most; index++) {
    const numbers = await numbersOf(index);
    for (let i = 0; i < numbers.length && found.length < most; i++) {
      if (matching.has(numbers[i])) found.push([index, i + 1]);
    }
  }
  return found;
}
