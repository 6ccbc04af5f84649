#!/usr/bin/env node
// Our TOON held against that of the official JavaScript package, byte for byte, on random documents.
//
//   tests/toon/parity.mjs target/debug/toon-encode [--documents 10000] [--seed 1] [--counts FILE]
//
// The package is the one that tests/install.sh installed. Ends with 0 if all documents are equal, 1 if one is not,
// 2 if it could not run. `--counts` writes `PASSED FAILED` for this one test, then the number of documents.

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

import { Documents } from "./documents.mjs";
import { official } from "./official.mjs";

const SHOWN = 5;

const { values: given, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    documents: { type: "string", default: "10000" },
    seed: { type: "string", default: "1" },
    counts: { type: "string" },
  },
});

async function main() {
  const count = Number(given.documents);
  if (positionals.length !== 1 || !(count > 0)) throw new Error("the argument is the program that encodes");
  const { encode, version } = await official();
  const asked = documents(count, Number(given.seed));
  const written = await ours(positionals[0], asked);
  const different = asked.filter((document, at) => {
    const { delimiter, indent, value } = document;
    document.ours = JSON.parse(written[at]);
    document.theirs = encode(value, { delimiter, indentSize: indent });
    return document.ours !== document.theirs;
  });
  for (const { json, delimiter, indent, ours, theirs } of different.slice(0, SHOWN)) {
    console.log(`document: ${json}\noptions: ${JSON.stringify({ delimiter, indent })}`);
    console.log(`ours: ${JSON.stringify(ours)}\ntheirs: ${JSON.stringify(theirs)}\n`);
  }
  const tables = asked.filter(({ theirs }) => /\[\d+[\t|]?\]\{/.test(theirs)).length;
  const keyed = asked.filter(({ theirs }) => /\[\d+:[\t|]?\]\{/.test(theirs)).length;
  console.log(
    `${count - different.length} of ${count} documents are equal to those of @toon-format/toon ${version}` +
      ` (${tables} with tables, ${keyed} with keyed tables)`,
  );
  if (given.counts) writeFileSync(given.counts, `${different.length === 0 ? "1 0" : "0 1"}\n${count} TOON documents\n`);
  return different.length === 0 ? 0 : 1;
}

function documents(count, seed) {
  const source = new Documents(seed);
  return Array.from({ length: count }, () => {
    const { json } = source.next();
    // The same text for both: what JSON.parse makes of it is what the package is given.
    return { ...source.options(), json, value: JSON.parse(json) };
  });
}

/** One line of the program for each document. */
async function ours(program, asked) {
  const child = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  // A program that ends early is told by its exit code.
  child.stdin.on("error", () => {});
  child.stdin.end(asked.map(({ delimiter, indent, json }) => `[${JSON.stringify(delimiter)},${indent},${json}]\n`).join(""));
  const lines = [];
  for await (const line of createInterface({ input: child.stdout })) lines.push(line);
  const status = await ended;
  if (status !== 0 || lines.length !== asked.length) {
    throw new Error(`${program} ended with ${status} after ${lines.length} of ${asked.length} documents`);
  }
  return lines;
}

main().then(
  (status) => (process.exitCode = status),
  (error) => {
    console.error(`tests/toon/parity.mjs: ${error.message}`);
    process.exitCode = 2;
  },
);
