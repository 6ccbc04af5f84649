#!/usr/bin/env node
// How long the official JavaScript package takes for one document, for `cargo xtask bench`.
//
//   tests/toon/speed.mjs document.json expected.toon ROUNDS
//
// Prints a JSON array of its name and the median in milliseconds; ends with 1 if its text is another.

import { readFileSync } from "node:fs";

import { official } from "./official.mjs";

const WARM_UP = 3;

async function main([document, expected, rounds]) {
  const { encode, version } = await official();
  const value = JSON.parse(readFileSync(document, "utf8"));
  for (let round = 0; round < WARM_UP; round++) {
    if (encode(value) !== readFileSync(expected, "utf8")) throw new Error("its text is another than ours");
  }
  const times = Array.from({ length: Number(rounds) }, () => {
    const started = performance.now();
    encode(value);
    return performance.now() - started;
  });
  times.sort((a, b) => a - b);
  const name = `@toon-format/toon ${version}, Node ${process.versions.node}`;
  console.log(JSON.stringify([name, times[Math.floor(times.length / 2)]]));
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
