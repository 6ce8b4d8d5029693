/**
 * After tsc has written `dist/` file by file: makes of its JavaScript the public entries, under the names that package.json
 * gives them, and a few chunks in `dist/chunks/` for what they share. A start then reads a handful of files instead of
 * hundreds. A module is in one chunk only, so classes and registries are the same for all entries. Declarations stay as
 * tsc wrote them.
 */
import fs from "node:fs";
import path from "node:path";
import { rolldown } from "rolldown";

const manifest = new URL("../package.json", import.meta.url);

/** Entries beside those of package.json: threads start from it. */
const worker = "workspace-store/capture-worker";

/**
 * Features that come together: what every command needs at once, what working with a directory needs, and what models and
 * tools need on top. The rest is shared by few, or by commands that are loaded one at a time.
 */
const together = {
  core: ["core"],
  workspace: ["storage", "session-store", "workspace-store", "workspace"],
  agent: ["tool", "loop", "session", "rig", "builtin-tools"],
};

/** Bundles the JavaScript in `dist` where it is; what was written file by file is removed. */
export async function bundle(dist) {
  const build = await rolldown({
    input: Object.fromEntries([...publicEntries(), worker].map((entry) => [entry, path.join(dist, `${entry}.js`)])),
    cwd: dist,
    platform: "node",
    // Entries keep all their exports; chunks may add what they need of each other.
    preserveEntrySignatures: "allow-extension",
    external: (id) => !id.startsWith(".") && !path.isAbsolute(id),
    plugins: [readWithMaps],
    // Warnings are errors below, and how busy the machine is should not be one.
    checks: { bundlerTimings: false },
    onLog(level, log) {
      if (level === "warn") throw new Error(`The bundler warns: ${log.message}`);
    },
  });
  try {
    const { output } = await build.write({
      dir: dist,
      format: "esm",
      sourcemap: true,
      entryFileNames: "[name].js",
      // Without hashes: names in stack traces stay, and so does what a running process has yet to load.
      chunkFileNames: "chunks/[name].js",
      // Nothing is renamed, for whoever reads a stack trace; comments are in the maps and the declarations.
      minifyInternalExports: false,
      comments: { legal: true, annotation: true, jsdoc: false },
      codeSplitting: { includeDependenciesRecursively: false, groups: groups(dist) },
    });
    removeOthers(dist, new Set(output.map(({ fileName }) => path.join(dist, fileName))));
    return output;
  } finally {
    await build.close();
  }
}

function publicEntries() {
  const { exports, bin } = JSON.parse(fs.readFileSync(manifest, "utf8"));
  const files = [...Object.values(exports).map((target) => target.default), ...Object.values(bin)];
  return files.flatMap((file) => /^(?:\.\/)?dist\/(.*)\.js$/.exec(file ?? "")?.[1] ?? []);
}

/** With the maps of tsc, so that those of the chunks lead to the sources. */
const readWithMaps = {
  name: "read-with-maps",
  load(id) {
    const map = `${id}.map`;
    if (!fs.existsSync(map)) return null;
    const code = fs.readFileSync(id, "utf8").replace(/^\/\/# sourceMappingURL=.*$/m, "");
    return { code, map: fs.readFileSync(map, "utf8") };
  },
};

function groups(dist) {
  const featureOf = (id) => path.relative(dist, id).split(path.sep)[0];
  const ofFeature = (id) => Object.keys(together).find((name) => together[name].includes(featureOf(id)));
  const isTesting = (id) => path.dirname(id).endsWith(`${path.sep}testing`);
  const start = path.join(dist, `${worker}.js`);
  let lane;
  return [
    {
      debugName: "features",
      name(id, context) {
        // It runs when it is loaded, so nothing else may load it.
        if (id === start) return null;
        // Apart from the rest, since every thread that starts reads it.
        lane ??= staticImports(start, context);
        const feature = isTesting(id) ? undefined : ofFeature(id);
        return feature === "workspace" && lane.has(id) ? "lane" : (feature ?? null);
      },
    },
    { name: "cli", test: (id) => featureOf(id) === "cli", minShareCount: 2 },
  ];
}

/** The modules that `entry` needs before its first line, itself not counted. */
function staticImports(entry, context) {
  const found = new Set();
  const visit = (id) => {
    for (const imported of context.getModuleInfo(id)?.importedIds ?? []) {
      if (found.has(imported)) continue;
      found.add(imported);
      visit(imported);
    }
  };
  visit(entry);
  return found;
}

function removeOthers(dist, written) {
  for (const name of fs.readdirSync(dist, { recursive: true })) {
    const file = path.join(dist, name);
    if (/\.js(?:\.map)?$/.test(name) && !written.has(file)) fs.rmSync(file);
  }
}
