/**
 * The real services that suites need: their names, whether they are installed, and how to install them.
 *
 *   node scripts/services.js install    installs missing services, as root on Debian; otherwise prints the command (exit 1)
 *   node scripts/services.js status     lists installed and missing services with the suites that need them
 *
 * A suite declares a service by calling `needs('name')` (test/harness/services.ts). Only services that some suite needs
 * are installed. No service is left running: suites start their own processes, on free ports, in temporary folders.
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

/** Debian's packages of each service, and a function that finds its program: a path, or undefined if it is missing. */
const services = /** @type {Record<ServiceName, Service>} */ ({
  chromium: {
    packages: ['chromium'],
    find: () => onPath('chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'),
  },
  postgresql: { packages: ['postgresql'], find: debianPostgres },
  redis: { packages: ['redis-server'], find: () => onPath('redis-server') },
  rabbitmq: { packages: ['rabbitmq-server'], find: () => onPath('rabbitmq-server') },
  // tini is the program that Docker runs first in a container (`Init`)
  docker: { packages: ['docker.io', 'tini'], find: () => onPath('dockerd') },
  podman: { packages: ['podman', 'runc'], find: () => onPath('podman') },
  registry: { packages: ['docker-registry', 'apache2-utils'], find: () => onPath('docker-registry') },
  busybox: { packages: ['busybox-static'], find: () => onPath('busybox') },
  systemd: { packages: ['systemd'], find: () => onPath('systemd-analyze') },
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

/** Debian keeps PostgreSQL's programs off the path, in a folder per version. Finds `postgres` of the newest version. */
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
 * The services that suites need, with those suites.
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
        throw new Error(`${suite} needs the unknown service '${name}'; known are ${Object.keys(services).join(', ')}`);
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
 * Installs missing services where possible, and prints what it does.
 *
 * @param {Iterable<ServiceName>} names
 * @returns {Promise<ServiceName[]>} the services still missing
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
      `Missing: ${missing.join(', ')}. apt-get was not found: install the equivalents of Debian's ${packages.join(', ')}.`,
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
  // another apt-get may be running: wait for its lock rather than fail
  const options = ['-qq', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3'];
  await twice(['update', ...options]);
  await twice(['install', '--yes', '--no-install-recommends', ...options, ...packages]);
}

/**
 * Retries once after 5 s, because mirrors and locks fail now and then.
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
 * Debian starts a daemon when its package is installed, unless policy-rc.d forbids it. A file that was there before is
 * put back: afterwards, after an interrupt, and by the next call after a kill.
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
  // apt-get receives the terminal's interrupt too, and ends by itself
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
  if (missing.length === 0) console.log(`All installed: ${names.join(', ') || 'no suite needs a service'}.`);
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
