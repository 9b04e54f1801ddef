#!/usr/bin/env node
// Starts the program of this platform, which npm installed as an optional dependency. On Unix the
// program gets this terminal and every signal; its exit code is ours.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const target = `${process.platform}-${process.arch}`;
const name = `@unspool/${target}`;
const file = process.platform === "win32" ? "unspool.exe" : "unspool";

function fail(text) {
  process.stderr.write(`unspool: ${text}\n`);
  process.exit(1);
}

function findProgram() {
  try {
    return require.resolve(`${name}/bin/${file}`);
  } catch {
    const known = Object.keys(require("../package.json").optionalDependencies ?? {});
    if (known.includes(name)) {
      fail(
        `the package ${name}, which holds the program, is not installed. npm leaves it out with ` +
          `--omit=optional, and on a Linux without glibc (Alpine). Install again without the option; ` +
          "elsewhere build it from source: cargo install --path crates/unspool",
      );
    }
    const platforms = known.map((one) => one.replace("@unspool/", "")).join(", ");
    return fail(
      `there is no program for ${target} in this package, only for: ${platforms}. ` +
        "Build it from source: cargo install --path crates/unspool",
    );
  }
}

const program = findProgram();
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(`cannot start ${program}: ${error.message}`));
// We stay until the program has ended, and pass on what is sent to this process alone. The keys of a
// terminal (Ctrl-C, Ctrl-\) reach the program as well, which must not get them twice.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  const isKey = process.stdin.isTTY && (signal === "SIGINT" || signal === "SIGQUIT");
  process.on(signal, () => isKey || child.kill(signal));
}
child.on("exit", (code, signal) => {
  process.exit(signal ? 128 + constants.signals[signal] : code);
});
