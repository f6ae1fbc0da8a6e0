/**
 * The tutorial of docs/flows: its files as it shows them, its commands in the order in which a reader types them, and their output. The
 * reader's visit to the answer page is a request of this test.
 */
import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Product, productMain, productNode, removeHome, startProduct } from '../harness/product.ts';
import { makeTaskFolder } from '../harness/task-folder.ts';
import { until } from '../harness/until.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
let folder = '';
let product: Product;
let tutorial: Tutorial;

beforeAll(async () => {
  folder = await makeTaskFolder();
  tutorial = await readTutorial();
  for (const [name, text] of tutorial.files) await writeFile(join(folder, name), text);
  const args = tutorial.server.replace(/^npx millrace up /, '').split(' ');
  product = await startProduct({ args, cwd: folder, env: { MILLRACE_LOG: 'info' } });
}, 120_000);
afterAll(async () => {
  await product?.stop();
  if (product !== undefined) await removeHome(product.home);
  await rm(folder, { recursive: true, force: true });
});

interface Step {
  readonly section: string;
  readonly commands: string;
  /** What the page says they print; empty: nothing is said. */
  readonly printed: string;
}

interface Tutorial {
  readonly files: readonly (readonly [name: string, text: string])[];
  /** The command that starts Millrace. */
  readonly server: string;
  readonly steps: readonly Step[];
}

async function readTutorial(): Promise<Tutorial> {
  const page = await readFile(join(root, 'docs/flows/tutorial.md'), 'utf8');
  const files = [...page.matchAll(/Save this as\s+`([\w.]+)`:\n\n```\w+\n([\s\S]*?)^```$/gm)];
  const steps = page.split(/^## /m).flatMap((text) => {
    const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```$(?:\n\n```text\n([\s\S]*?)^```$)?/gm)];
    const [section = ''] = text.split('\n', 1);
    return blocks.map(([, commands = '', printed = '']) => ({ section, commands, printed }));
  });
  const isServer = ({ commands }: Step): boolean => commands.includes('npx millrace up');
  const [server = ''] = /^npx millrace up .*$/m.exec(steps.find(isServer)?.commands ?? '') ?? [];
  return {
    files: files.map(([, name = '', text = '']) => [name, text] as const),
    server,
    steps: steps.filter((step) => !isServer(step)),
  };
}

/**
 * A reader takes a moment before looking: commands that look at an execution wait until it has come to rest. `mkdir` and `cd` are those
 * of the test.
 */
const prologue = `set -e
main() { "${productNode}" "${productMain}" "$@"; }
rest() {
  until main flow show "$1" --json | "${productNode}" -e '
    const { is_busy, nodes } = JSON.parse(require("fs").readFileSync(0));
    process.exit(is_busy || nodes.some(({ waits }) => waits === null) ? 1 : 0)'; do sleep 0.1; done
}
npx() {
  shift
  case "$1 $2" in "flow show" | "flow history" | "flow skip") rest "$3";; "why "*) rest "$2";; esac
  main "$@"
}
mkdir() { :; }
cd() { :; }
`;

async function run(
  steps: readonly Step[],
  id: string,
): Promise<{ readonly ran: Answer; readonly outputs: string[]; readonly id: string }> {
  const commands = steps.map((step) => `${step.commands}\necho "@@@"`).join('\n');
  const script = `${prologue}ID=${id}\n${commands}\necho "$ID"`;
  const env = { ...process.env, MILLRACE_HOME: product.home, MILLRACE_URL: product.url };
  const ran = await new Promise<Answer>((resolve) => {
    const child = execFile('bash', ['-c', script], { cwd: folder, env }, (_, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });
  expect(ran, `${ran.stdout}\n${ran.stderr}\n${product.output()}`).toMatchObject({ code: 0 });
  const outputs = ran.stdout.split('@@@\n');
  return { ran, outputs, id: outputs.pop()?.trim() ?? '' };
}

/** Ids, times, ages and the number of reminders differ from one reader to the next. `…` stands for the rest of a line. */
function normalize(text: string): string[] {
  return text
    .replaceAll(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, 'ID')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/https?:\/\/[\w.:-]+\/answers\/[\w.~-]+/g, 'LINK')
    .replaceAll(/\b\d+(?:s|m|h|h\d+m|d)\b/g, 'AGE')
    .replaceAll(/\b0(?:_[a-z]?\d+)+-\d+/g, 'NODE')
    .replaceAll(/^ *\d+ (?=TIME)/gm, '')
    .split('\n')
    .map((line) => line.replaceAll(/\s+/g, ' ').trim())
    .filter((line) => line !== '' && !line.includes('remind'));
}

function expectOutputs(steps: readonly Step[], outputs: readonly string[]): void {
  for (const [i, { printed, commands }] of steps.entries()) {
    const actual = normalize(outputs[i] ?? '');
    const isPrinted = (line: string): boolean =>
      line.endsWith('…') ? actual.some((each) => each.startsWith(line.slice(0, -1))) : actual.includes(line);
    const missing = normalize(printed).filter((line) => !isPrinted(line));
    expect(missing, `of the output of\n${commands}which is\n${outputs[i]}`).toEqual([]);
  }
}

it('the commands of the tutorial work in their order, and print what it shows', async () => {
  const decide = tutorial.steps.findIndex(({ section }) => section === 'Decide');
  const [before, after] = [tutorial.steps.slice(0, decide), tutorial.steps.slice(decide)];
  const first = await run(before, '');
  expectOutputs(before, first.outputs);
  const link = await until('the reminder is printed', () => /http:\S+\/answers\/[\w.~-]+/.exec(product.output())?.[0]);
  const answered = await fetch(link, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ approved: true }),
  });
  expect(answered.status).toBe(200);
  const second = await run(after, first.id);
  expectOutputs(after, second.outputs);
  expect(second.outputs.at(-1)).toContain('done');
}, 180_000);
