#!/usr/bin/env node
// Starts the program from the package of this platform, with the same arguments, input and output. Signals are passed on.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");
const own = require("../package.json");

const [name] = Object.keys(own.bin);

function program() {
  for (const candidate of Object.keys(own.optionalDependencies)) {
    try {
      return require.resolve(`${candidate}/bin/${name}`);
    } catch {
      // Not the package of this platform.
    }
  }
  console.error(
    `error: there is no ${name} for ${process.platform} ${process.arch} here\n` +
      `hint: Packages: ${Object.keys(own.optionalDependencies).join(", ")}. ` +
      "Install without `--omit=optional`, or build it from source.",
  );
  process.exit(1);
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + os.constants.signals[signal]));
