// The official JavaScript package, from where tests/install.sh put it.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const cache = process.env.HIKITE_TEST_CACHE ?? path.join(root, ".cache/tests");
const folder = path.resolve(cache, "node/node_modules/@toon-format/toon");

export async function official() {
  const about = await readFile(path.join(folder, "package.json"), "utf8").catch(() => {
    throw new Error("@toon-format/toon is not installed: run tests/install.sh");
  });
  const { encode } = await import(pathToFileURL(path.join(folder, "dist/index.mjs")));
  return { encode, version: JSON.parse(about).version };
}
