/**
 * Every command of the pages about flows is understood: its subcommand, flags and arguments exist, and its files can be read. Commands
 * that need a server get as far as calling it; those that need none succeed. `test/e2e/flow-tutorial.test.ts` runs the tutorial itself.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { exitCodes } from '../../src/cli/session/exit.ts';
import { shell } from '../harness/cli/shell.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const id = '01890a5d-0000-7000-8000-000000000000';
const pages = ['docs/flows.md', 'docs/flows/tutorial.md', 'docs/flows/how-to.md', 'examples/flows/README.md'];
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-docs-'));
  await copyFile(join(root, 'examples/flows/expense.yaml'), join(folder, 'expense.yaml'));
  const howTo = await readFile(join(root, 'docs/flows/how-to.md'), 'utf8');
  await writeFile(join(folder, 'order.yaml'), /^```yaml\n(flow: order[\s\S]*?)^```$/m.exec(howTo)?.[1] ?? '');
  await writeFile(join(folder, 'e1.json'), '{"id": "e1", "manager": "meg"}');
  await writeFile(join(folder, 'order-17.json'), '{}');
  await writeFile(join(folder, 'pay-by-hand.yaml'), '- task: pay-by-hand\n');
});
afterAll(() => rm(folder, { recursive: true }));

/** The commands of a page, as the shell splits them: it runs the blocks with programs that only note their arguments. */
async function readCommands(page: string): Promise<string[][]> {
  const text = await readFile(join(root, page), 'utf8');
  const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, body = '']) => body);
  const script = [
    `millrace() { printf '%s\\0' "$@" >&3; printf '\\1\\0' >&3; echo ${id}; }`,
    'npx() { shift; millrace "$@"; }',
    'curl() { :; }; jq() { cat; }; cd() { :; }; mkdir() { :; }; generate() { :; }',
    ...blocks,
  ].join('\n');
  const { stdout } = await promisify(execFile)('bash', ['-c', `{ ${script}\n} 3>&1 >/dev/null`], { encoding: 'utf8' });
  return stdout
    .split('\0\u0001\0')
    .filter((command) => command !== '')
    .map((command) => command.split('\0').map((word) => (word === 'ID' ? id : word)));
}

const idle = async (): Promise<void> => {};

it.each(pages)('every command of %s is understood', async (page) => {
  const commands = await readCommands(page);
  expect(commands.length).toBeGreaterThan(4);
  const env = { MILLRACE_URL: 'http://127.0.0.1:1', MILLRACE_KEY: 'none' };
  for (const argv of commands) {
    const cwd = argv.join(' ').includes('examples/flows') ? root : folder;
    const ran = await shell(argv, { env, cwd, roles: { up: idle } });
    expect([exitCodes.ok, exitCodes.failed, exitCodes.unreachable], `${argv.join(' ')}: ${ran.stderr}`).toContain(
      ran.code,
    );
    // a test of a flow may show its failure
    if (ran.code === exitCodes.failed) expect(argv.slice(0, 2)).toEqual(['flow', 'test']);
  }
});
