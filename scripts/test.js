/**
 * `npm test [-- vitest's arguments]`: the test command of the README; with CI=true it runs everything that CI guards.
 *
 * 1. It builds if sources have changed, because end-to-end suites run dist/.
 * 2. With CI=true, it runs the cheap checks of `npm run check`.
 * 3. It installs the services that the suites need, as root on Debian; otherwise it prints the command.
 * 4. It runs the suites on this Node, then some end-to-end suites with the product on the newest Node.
 * 5. It ends with a line for each test that failed or was skipped, and a line `N passed, N failed, N skipped`.
 *
 * Arguments narrow a run down (`npm test -- src/kernel`): then there are no checks, no second Node, and only the services
 * that those suites need. Skips are printed; in a full run with CI=true they are failures.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { build } from './build.js';
import { cheapChecks } from './check.js';
import { inCi, messageOf, packageFolder, root, run } from './command.js';
import { newestNode } from './newest-node.js';
import { installCommand, installServices, neededServices } from './services.js';

/** @typedef {{ passed: number, failed: number, skipped: number, unmet: string[] }} Counts unmet: a line for each test
 *   that failed or was skipped */
/** @typedef {{ status: string, fullName: string, failureMessages?: string[] }} Assertion */
/** @typedef {{ name: string, status: string, message: string, assertionResults: Assertion[] }} FileResult */
/** @typedef {{ numPassedTests: number, numFailedTests: number, numPendingTests: number, numTodoTests: number,
 *   testResults: FileResult[] }} Report as vitest's json reporter writes it */

/** @param {string[]} args */
async function main(args) {
  const checked = args[0] === '--checked';
  const narrowing = checked ? args.slice(1) : args;
  const full = narrowing.length === 0;
  await build();
  const faults = inCi && full && !checked ? await cheapChecks() : [];
  const skips = await services(narrowing);
  const counts = [await vitest(narrowing)];
  if (full) {
    const onNewest = await vitestOnNewestNode();
    if (typeof onNewest === 'string') skips.push(onNewest);
    else counts.push(onNewest);
  }
  return conclude(sum(counts), { faults, skips, full });
}

/**
 * Installs what the suites need; returns a line for each service that is missing, whose suites are skipped.
 *
 * @param {readonly string[]} narrowing
 */
async function services(narrowing) {
  const needed = neededServices(narrowing.filter((arg) => !arg.startsWith('-')));
  const missing = await installServices(needed.keys());
  return missing.map((name) => `${name} is missing (${installCommand}), needed by ${needed.get(name)?.join(', ')}`);
}

/**
 * @param {readonly string[]} args
 * @param {Record<string, string>} [env]
 * @returns {Promise<Counts>}
 */
async function vitest(args, env = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-test-'));
  try {
    const file = join(folder, 'report.json');
    const script = join(packageFolder('vitest') ?? '', 'vitest.mjs');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
    const { code } = await run(process.execPath, [script, 'run', ...reporters, ...args], { env });
    return count(await readReport(file), code);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} file
 * @returns {Promise<Report | undefined>}
 */
async function readReport(file) {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : JSON.parse(text);
}

/**
 * A file that did not load has no tests to count, and an error outside of every test has none either. Whatever made
 * vitest fail therefore counts as at least one failure.
 *
 * @param {Report | undefined} report
 * @param {number} code vitest's exit code
 * @returns {Counts}
 */
function count(report, code) {
  if (report === undefined) return { passed: 0, failed: 1, skipped: 0, unmet: ['failed: vitest wrote no report'] };
  const unloaded = report.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0);
  const failed = report.numFailedTests + unloaded.length;
  return {
    passed: report.numPassedTests,
    failed: code !== 0 ? Math.max(failed, 1) : failed,
    skipped: report.numPendingTests + report.numTodoTests,
    unmet: report.testResults.flatMap(unmetIn),
  };
}

/**
 * A log may be cut to its end: these lines still say which test it was.
 *
 * @param {FileResult} file
 */
function unmetIn({ name, status, message, assertionResults }) {
  const path = relative(root, name);
  if (status === 'failed' && assertionResults.length === 0) return [`failed: ${path}: ${firstLine(message)}`];
  return assertionResults
    .filter((test) => test.status !== 'passed')
    .map(({ status: outcome, fullName, failureMessages: [fault = ''] = [] }) =>
      outcome === 'failed' ? `failed: ${path}: ${fullName}: ${firstLine(fault)}` : `skipped: ${path}: ${fullName}`,
    );
}

/** @param {string} text */
function firstLine(text) {
  return text.split('\n', 1)[0] ?? '';
}

/** Suites for which another Node might make a difference: processes, functions, streams, TLS, sockets. */
const onNewest = ['smoke', 'functions', 'sse', 'tls'].map((name) => `test/e2e/${name}`);

/**
 * Runs those end-to-end suites again, with the product started by the newest Node.
 *
 * @returns {Promise<Counts | string>} the counts, or the reason why they were not run
 */
async function vitestOnNewestNode() {
  try {
    const { path, version } = await newestNode();
    console.log(`End-to-end suites again, on Node ${version}:`);
    return await vitest(['--project=ends', '--project=serial', ...onNewest], { MILLRACE_TEST_NODE: path });
  } catch (error) {
    return `the newest Node is not available: ${messageOf(error)}`;
  }
}

/** @param {readonly Counts[]} all */
function sum(all) {
  /** @param {'passed' | 'failed' | 'skipped'} key */
  const total = (key) => all.reduce((n, counts) => n + counts[key], 0);
  const unmet = all.flatMap((counts) => counts.unmet);
  return { passed: total('passed'), failed: total('failed'), skipped: total('skipped'), unmet };
}

/**
 * @param {Counts} counts
 * @param {{ faults: string[], skips: string[], full: boolean }} rest
 * @returns {number} the exit code
 */
function conclude({ passed, failed, skipped, unmet }, { faults, skips, full }) {
  for (const line of unmet) console.log(line);
  for (const skip of skips) console.log(`SKIPPED: ${skip}`);
  if (faults.length > 0) console.log(`FAILED: ${faults.join(', ')}`);
  const mayNotSkip = inCi && full && skipped + skips.length > 0;
  if (mayNotSkip) console.log('FAILED: with CI=true nothing may be skipped');
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed > 0 || faults.length > 0 || mayNotSkip ? 1 : 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(`\nThe tests could not be run. ${messageOf(error)}`);
  process.exitCode = 1;
}
