/** A task gets exactly the environment that the docs describe, and its log shows no secrets. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runTask, shell } from '../harness/one-task.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';

let product: Product;

beforeAll(async () => {
  product = await startProduct({
    env: { SECRET_OF_THE_SERVER: 'not for tasks', LANG: 'C.UTF-8', TZ: 'UTC', TMPDIR: '/tmp' },
  });
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

const docs = readFileSync(fileURLToPath(new URL('../../docs/jobs.md', import.meta.url)), 'utf8');

/** The first column of the table under "What a task is given", for a job's task; `_X` goes on from the name before it. */
function documented(): string[] {
  const section = docs.slice(docs.indexOf('### What a task is given'));
  const rows = section.split('\n').filter((line) => line.startsWith('| `') && !line.includes('of tasks of [flows]'));
  return rows.flatMap((row) => {
    const names = [...(row.split('|')[1] ?? '').matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => name);
    const prefix = names[0]?.split('_')[0] ?? '';
    return names.map((name) => (name.startsWith('_') ? prefix + name : name));
  });
}

/** The variables that the docs say are inherited. */
function inherited(): string[] {
  const sentence = /Of the worker's environment it inherits ([^.]+) only/.exec(docs)?.[1] ?? '';
  return [...sentence.matchAll(/`([A-Z]+)`/g)].map(([, name = '']) => name);
}

it('the environment of a task has exactly the declared, documented and inherited variables', async () => {
  const { text } = await runTask(product, { process: { command: ['/usr/bin/env', '-0'], env: { DECLARED: 'yes' } } });
  const names = text
    .split('\0')
    .filter((line) => line !== '')
    .map((line) => line.split('=')[0]);
  expect(inherited()).toEqual(['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR']);
  expect(documented()).toContain('WATERWHEEL_JWT');
  // in its place where they are large
  const documentedNames = documented().filter((name) => name !== 'MILLRACE_PARAMS_URL');
  const ofOwnUser = process.getuid?.() === 0 ? ['USER', 'LOGNAME'] : [];
  expect(new Set(names)).toEqual(new Set([...documentedNames, ...inherited(), ...ofOwnUser, 'DECLARED']));
});

describe('secrets in the log', () => {
  const script = (lines: string[], env: object): object => shell(lines.join('\n'), { env });
  const password = 'correct horse battery';
  const certificate = '-----BEGIN-----\nMIIBVgIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END-----\n';

  beforeAll(async () => {
    for (const [key, value] of [['password', password] as const, ['certificate', certificate] as const]) {
      await product.call('PUT /api/stash/{key}', { params: { key }, body: Buffer.from(value) });
    }
  });

  it('the credential is masked in the log', async () => {
    const print = 'echo "[$MILLRACE_CREDENTIAL] [$WATERWHEEL_JWT]"; echo "${#MILLRACE_CREDENTIAL}"';
    expect((await runTask(product, shell(print))).text).toMatch(/^\[\*\*\*\] \[\*\*\*\]\n\d{3}\n$/);
  });

  it('a stash value is masked on both streams, in however many pieces it is printed', async () => {
    const lines = [
      'echo "it is $PASSWORD."',
      'echo "and $PASSWORD$PASSWORD" >&2',
      'for part in corr ect " " hor "se bat" tery; do printf %s "$part"; sleep 0.15; done; echo',
      '[ "$PASSWORD" = "correct horse battery" ] && echo known',
    ];
    const { text } = await runTask(product, script(lines, { PASSWORD: { stash: 'password' } }));
    expect(text).toBe('it is ***.\nand ******\n***\nknown\n');
  });

  it('each line of a stash value of several lines is masked', async () => {
    const lines = ['echo "$CERTIFICATE"', 'echo "$CERTIFICATE" | sed "s/^/> /"'];
    const { text } = await runTask(product, script(lines, { CERTIFICATE: { stash: 'certificate' } }));
    expect(text).toBe(`${'***\n'.repeat(4)}\n${'> ***\n'.repeat(4)}> \n`);
  });

  it('an encoded stash value is not masked, as documented', async () => {
    const { text } = await runTask(
      product,
      script(['printf %s "$PASSWORD" | base64'], { PASSWORD: { stash: 'password' } }),
    );
    expect(text.trim()).toBe(Buffer.from(password).toString('base64'));
    expect(docs).toContain('base64');
  });
});
