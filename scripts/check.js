/**
 * `npm run check`: everything a change must pass. All cheap checks run, even if one fails, so that one run reports every
 * fault. If they pass, the tests follow (which include the diff of the committed schemas).
 *
 * The commands are those of package.json, so that `npm run lint` and this script cannot differ.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMain, root, run, seconds } from './command.js';

const { scripts } = /** @type {{ scripts: Record<'lint' | 'types' | 'unused', string> }} */ (
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
);

/** title → command lines */
const checks = [
  { title: 'format', lines: ['biome format .'] },
  { title: 'lint', lines: [scripts.lint] },
  { title: 'types', lines: ['tsc --noEmit -p scripts', scripts.types] },
  { title: 'unused', lines: [scripts.unused] },
];

/**
 * Runs every cheap check. Prints one line for each that passes, and the output of each that fails.
 *
 * @returns {Promise<string[]>} the titles of the failed checks
 */
export async function cheapChecks() {
  const failed = [];
  for (const { title, lines } of checks) {
    const startedAt = performance.now();
    const results = [];
    for (const line of lines) results.push(await run(line, [], { shell: true, quiet: true }));
    const passed = results.every(({ code }) => code === 0);
    console.log(`${passed ? '✓' : '✗'} ${title} (${seconds(startedAt)})`);
    if (passed) continue;
    failed.push(title);
    for (const { code, output } of results) if (code !== 0) console.log(output);
  }
  return failed;
}

async function main() {
  const failed = await cheapChecks();
  if (failed.length > 0) {
    console.log(`Failed: ${failed.join(', ')}. The tests were not run.`);
    return 1;
  }
  const startedAt = performance.now();
  const { code } = await run(process.execPath, [join(root, 'scripts', 'test.js'), '--checked']);
  console.log(`${code === 0 ? '✓' : '✗'} tests (${seconds(startedAt)})`);
  return code;
}

if (isMain(import.meta.url)) process.exitCode = await main();
