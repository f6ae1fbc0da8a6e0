/**
 * The real services that suites talk to: which there are, whether they are on this machine, and how to get them.
 *
 *   node scripts/services.js install    what is missing, as root on Debian; anyone else is told the command (exit 1)
 *   node scripts/services.js status     what is there, what is missing, who needs it
 *
 * A suite declares what it needs by calling `needs('name')` (test/harness/services.ts); only what some suite needs is
 * installed. Nothing is left running: suites start their own processes, on free ports, in temporary folders.
 */
import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isMain, messageOf, root, run, seconds } from './command.js';

/** @typedef {import('./services.d.ts').ServiceName} ServiceName */
/** @typedef {{ packages: readonly string[], find: () => string | undefined }} Service */

/** name → Debian's packages, and where its program is: the path, or undefined where it is missing. */
const services = /** @type {Record<ServiceName, Service>} */ ({
  chromium: {
    packages: ['chromium'],
    find: () => onPath('chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'),
  },
  postgresql: { packages: ['postgresql'], find: debianPostgres },
  redis: { packages: ['redis-server'], find: () => onPath('redis-server') },
  rabbitmq: { packages: ['rabbitmq-server'], find: () => onPath('rabbitmq-server') },
  docker: { packages: ['docker.io', 'busybox-static'], find: () => onPath('dockerd') },
  netns: { packages: ['iproute2'], find: () => onPath('ip') },
});

export const installCommand = 'sudo npm run services';

/**
 * @param {ServiceName} name
 * @returns {string | undefined}
 */
export function findService(name) {
  return services[name].find();
}

/** @param {string[]} programs */
function onPath(...programs) {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return programs.flatMap((program) => folders.map((folder) => join(folder, program))).find(isExecutable);
}

/** Debian keeps PostgreSQL's programs off the path, in a folder per version: the newest one's `postgres`. */
function debianPostgres() {
  const base = '/usr/lib/postgresql';
  const versions = existsSync(base) ? readdirSync(base).toSorted((a, b) => Number(b) - Number(a)) : [];
  return versions.map((version) => join(base, version, 'bin', 'postgres')).find(isExecutable);
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Which services the suites ask for, and which suites those are.
 *
 * @param {readonly string[]} [filters] only suites whose path contains one of these
 * @returns {Map<ServiceName, string[]>}
 */
export function neededServices(filters = []) {
  /** @type {Map<ServiceName, string[]>} */
  const needed = new Map();
  for (const suite of suiteFiles()) {
    if (filters.length > 0 && !filters.some((filter) => suite.includes(filter))) continue;
    for (const [, name = ''] of readFileSync(join(root, suite), 'utf8').matchAll(/\bneeds\('([^']*)'\)/g)) {
      if (!isServiceName(name))
        throw new Error(`${suite} needs '${name}'; known are ${Object.keys(services).join(', ')}`);
      needed.set(name, [...(needed.get(name) ?? []), suite]);
    }
  }
  return needed;
}

/**
 * @param {string} name
 * @returns {name is ServiceName}
 */
function isServiceName(name) {
  return Object.hasOwn(services, name);
}

function suiteFiles() {
  return ['src', 'test']
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

/**
 * Installs what is missing where that is possible, and says what it does.
 *
 * @param {Iterable<ServiceName>} names
 * @returns {Promise<ServiceName[]>} what is still missing
 */
export async function installServices(names) {
  const missing = [...names].filter((name) => !findService(name));
  if (missing.length === 0) return [];
  if (process.getuid?.() !== 0) {
    console.log(`Missing: ${missing.join(', ')}. As root on Debian this installs them: ${installCommand}`);
    return missing;
  }
  const packages = missing.flatMap((name) => services[name].packages);
  if (!onPath('apt-get')) {
    console.log(
      `Missing: ${missing.join(', ')}. There is no apt-get here: install what Debian calls ${packages.join(', ')}.`,
    );
    return missing;
  }
  const startedAt = performance.now();
  console.log(`Installing ${missing.join(', ')} with apt-get; this may take a minute or two …`);
  try {
    await withoutStarting(() => aptInstall(packages));
    console.log(`Installed ${missing.join(', ')} in ${seconds(startedAt)}.`);
  } catch (error) {
    console.log(messageOf(error));
  }
  return missing.filter((name) => !findService(name));
}

/** @param {readonly string[]} packages */
async function aptInstall(packages) {
  // another apt may be at work: wait for its lock rather than fail
  const options = ['-qq', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3'];
  await twice(['update', ...options]);
  await twice(['install', '--yes', '--no-install-recommends', ...options, ...packages]);
}

/**
 * Mirrors and locks fail now and then: a second try, after a moment, before giving up.
 *
 * @param {readonly string[]} args
 */
async function twice(args) {
  const apt = () => run('apt-get', args, { env: { DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }, quiet: true });
  let { code, output } = await apt();
  if (code !== 0) {
    console.log(`apt-get ${args[0]} failed; trying once more …`);
    await pause(5_000);
    ({ code, output } = await apt());
  }
  if (code !== 0) throw new Error(`apt-get ${args[0]} failed:\n${output}`);
}

const policyFile = '/usr/sbin/policy-rc.d';
const keptPolicyFile = `${policyFile}.millrace-kept`;
const policy = '#!/bin/sh\n# Put here by Millrace while it installs packages: no daemon is started.\nexit 101\n';

/**
 * Debian starts a daemon when its package is installed, unless this file says no. Whatever was there before is put
 * back, also after an interrupt, and by the next call after a kill.
 *
 * @param {() => Promise<void>} work
 */
async function withoutStarting(work) {
  if (existsSync(policyFile) && readFileSync(policyFile, 'utf8') !== policy) renameSync(policyFile, keptPolicyFile);
  writeFileSync(policyFile, policy, { mode: 0o755 });
  const restore = () => {
    if (existsSync(keptPolicyFile)) renameSync(keptPolicyFile, policyFile);
    else rmSync(policyFile, { force: true });
  };
  // apt hears the terminal's interrupt too, and ends by itself
  const onSignal = () => {
    restore();
    process.exit(130);
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  try {
    await work();
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    restore();
  }
}

function printStatus() {
  const needed = neededServices();
  for (const name of Object.keys(services).filter(isServiceName)) {
    const suites = needed.get(name);
    console.log(`${name.padEnd(12)}${findService(name) ?? 'missing'}${suites ? `  (for ${suites.join(', ')})` : ''}`);
  }
  return [...needed.keys()].filter((name) => !findService(name));
}

async function main() {
  const verb = process.argv[2];
  if (verb === 'status') return printStatus();
  if (verb !== 'install') throw new Error('Usage: node scripts/services.js install|status');
  const names = [...neededServices().keys()];
  const missing = await installServices(names);
  if (missing.length === 0) console.log(`All there: ${names.join(', ') || 'no suite needs any service'}.`);
  return missing;
}

if (isMain(import.meta.url)) {
  try {
    process.exitCode = (await main()).length > 0 ? 1 : 0;
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = 1;
  }
}
