/**
 * Helpers for the scripts here: starts a program and waits for it. Its output goes to the terminal, or is kept and
 * returned. A failing exit code does not throw; the caller decides what it means.
 */
import { spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Skipped suites are allowed on a developer's machine; with CI=true they are failures. */
export const inCi = process.env['CI'] === 'true';

/**
 * @typedef {object} Options
 * @property {string} [cwd]
 * @property {Record<string, string>} [env] added to this process's own
 * @property {boolean} [quiet] return the output instead of printing it
 * @property {boolean} [shell]
 */

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {Options} [options]
 * @returns {Promise<{ code: number, output: string }>} code 127 if the program could not be started, 128 for a signal
 */
export function run(command, args, { cwd = root, env = {}, quiet = false, shell = false } = {}) {
  return new Promise((resolve) => {
    const path = [join(root, 'node_modules', '.bin'), process.env['PATH']].join(delimiter);
    const child = spawn(command, args, {
      cwd,
      shell,
      env: { ...process.env, PATH: path, ...env },
      stdio: quiet ? ['ignore', 'pipe', 'pipe'] : 'inherit',
    });
    let output = '';
    /** @param {Buffer} chunk */
    const keep = (chunk) => {
      output += chunk.toString();
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    child.on('error', (error) => resolve({ code: 127, output: `${command}: ${error.message}` }));
    child.on('close', (code) => resolve({ code: code ?? 128, output }));
  });
}

/**
 * Runs the npm that runs this script, or the npm on the path.
 *
 * @param {readonly string[]} args
 * @returns {Promise<{ code: number, output: string }>}
 */
export function npm(args) {
  const script = process.env['npm_execpath'];
  return script?.endsWith('.js')
    ? run(process.execPath, [script, ...args], { quiet: true })
    : run('npm', args, { quiet: true });
}

/**
 * The folder of an installed package as resolved from `from`; undefined if it is not installed.
 *
 * @param {string} name
 * @param {string} [from] a folder
 */
export function packageFolder(name, from = root) {
  try {
    return dirname(createRequire(join(from, 'package.json')).resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

/** @param {unknown} error */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** @param {number} startedAt as of performance.now() */
export function seconds(startedAt) {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}

/**
 * Whether node was asked to run the module at `url`, rather than importing it.
 *
 * @param {string} url import.meta.url
 */
export function isMain(url) {
  const [, script] = process.argv;
  return script !== undefined && existsSync(script) && realpathSync(script) === fileURLToPath(url);
}
