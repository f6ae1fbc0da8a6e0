/** The built product drives executions: `up --functions`, killed and started again, and `millrace conductor` beside an API. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Installation, openInstallation } from '../../src/app/installation.ts';
import { readConfig } from '../../src/config.ts';
import { readHeads } from '../../src/flows/executions/heads.ts';
import { readExecution } from '../../src/flows/executions/stored.ts';
import { silent } from '../../src/kernel/log.ts';
import { onPool } from '../../src/kernel/sql.ts';
import type { OpenTenant } from '../../src/loader/loader.ts';
import { RoleProcess } from '../chaos/role-process.ts';
import { launchMessage } from '../harness/flows/conducting.ts';
import { storeFlow } from '../harness/flows/store-driver.ts';
import { type FreshDatabase, makeFreshDatabase } from '../harness/fresh-database.ts';
import { makeHomeFolder, type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const functions = `
  import { appendFileSync, existsSync } from 'node:fs';
  const folder = process.env.TEST_FOLDER;
  const note = (name, { key, attempt }) => appendFileSync(folder + '/calls', [name, key, attempt].join(' ') + '\\n');
  export const one = ({ n }, call) => { note('one', call); return n + 1; };
  export const two = async ({ n }, call) => {
    note('two', call);
    while (!existsSync(folder + '/go')) await new Promise((done) => setTimeout(done, 20));
    return n * 10;
  };
  export const three = (input, call) => { note('three', call); throw Object.assign(new Error('too much'), { code: 'much' }); };
`;

let database: FreshDatabase;
let defaultDatabase: FreshDatabase;
let home = '';
let env: Record<string, string> = {};
let product: Product | undefined;
let installation: Installation;

beforeAll(async () => {
  [database, defaultDatabase, home] = await Promise.all([makeFreshDatabase(), makeFreshDatabase(), makeHomeFolder()]);
  await writeFile(join(home, 'functions.mjs'), functions);
  env = {
    MILLRACE_DATABASE_URL: database.address.url,
    MILLRACE_DEFAULT_DATABASE_URL: defaultDatabase.address.url,
    TEST_FOLDER: home,
    MILLRACE_TASK_USER: 'root',
  };
  await start();
  const config = readConfig({ ...env, MILLRACE_HOME: home });
  const options = { config, log: silent, role: 'tests', controlAddress: database.address, poolSize: 4 };
  const secretKey = (await readFile(join(home, 'secret-key'), 'utf8')).trim();
  installation = await openInstallation({ ...options, secretKeys: [secretKey] });
  const { ctx } = await tenant();
  await storeFlow(onPool(ctx.pool), {
    flow: 'three',
    steps: [
      { task: 'one', with: { n: '$(f.n)' }, result: 'f.n' },
      { task: 'two', with: { n: '$(f.n)' }, result: 'f.n' },
      { task: 'three', on_error: [{ set: { 'f.code': '$(err.code)' } }] },
    ],
  });
});
afterEach(async () => {
  await product?.stop();
  product = undefined;
});
afterAll(async () => {
  await installation.close();
  await removeHome(home);
  await Promise.all([database.close(), defaultDatabase.close()]);
});

async function start(): Promise<Product> {
  product = await startProduct({ home, env, args: ['--functions', join(home, 'functions.mjs')] });
  return product;
}

async function tenant(): Promise<OpenTenant> {
  return installation.loader.open(await installation.loader.find('default'));
}

async function launch(): Promise<string> {
  const { ctx } = await tenant();
  const message = launchMessage('three', { n: 1 });
  const [delivered] = await installation.conductors.deliver(ctx.tenant.id, [message], 1_000);
  expect(delivered).toMatchObject({ outcome: 'accepted' });
  return message.execution;
}

const calls = async (): Promise<string[]> =>
  (await readFile(join(home, 'calls'), 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');

async function doneFields(id: string) {
  await until('it is done', async () => {
    const { ctx } = await tenant();
    const [head] = await readHeads(onPool(ctx.pool), [id]);
    return head?.status === 'done' || undefined;
  });
  return (await readExecution((await tenant()).ctx, id))?.state.f;
}

it('`up --functions` calls the functions of a file, and repeats a call with the same key after it was killed', async () => {
  const id = await launch();
  await until('the second function is called', async () => (await calls()).length === 2 || undefined);
  product?.child.kill('SIGKILL');
  await start();
  await until('it is called again', async () => (await calls()).length === 3 || undefined);
  await writeFile(join(home, 'go'), '');
  expect(await doneFields(id)).toEqual({ n: 20, code: 'much' });
  const [one, two, again, three] = await calls();
  expect(one).toMatch(new RegExp(`^one ${id}/.* 1$`));
  expect(again).toBe(two);
  expect(three).toMatch(/^three /);
  await Promise.all([rm(join(home, 'calls')), rm(join(home, 'go'))]);
});

it('`millrace conductor` drives executions beside an API without functions', async () => {
  await writeFile(join(home, 'go'), '');
  const role = (name: string, ...args: string[]): RoleProcess =>
    new RoleProcess({ name, args: [name, ...args], env: { ...env, MILLRACE_HOME: home }, mayEnd: () => false });
  const api = role('api', '--port', '0');
  const conductor = role('conductor', '--functions', join(home, 'functions.mjs'));
  try {
    expect(await doneFields(await launch())).toEqual({ n: 20, code: 'much' });
    expect((await calls()).length).toBe(3);
    expect(conductor.output()).toMatch(/^ {2}tasks {5}(Each task runs|Tasks run) as /m);
  } finally {
    await Promise.all([conductor.release(), api.release()]);
  }
});
