/** What a task can reach of the installation that runs it, and what /proc shows. */
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runTask, shell } from '../harness/one-task.ts';
import { descendants } from '../harness/process-tree.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { startWorkerProcess } from '../harness/worker-process.ts';

const isRoot = process.getuid?.() === 0;
const secrets = { MILLRACE_SECRET_KEY: 'a secret key of this test', MILLRACE_KEY: 'a key of this test' };
let product: Product;
/** Only root may enter it; the product runs there. */
let closed: string;

beforeAll(async () => {
  closed = mkdtempSync('/tmp/millrace-closed-');
  product = await startProduct({ env: secrets, cwd: closed });
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
  rmSync(closed, { recursive: true });
});

async function printed(script: string): Promise<string> {
  return (await runTask(product, shell(script))).text.trim();
}

describe.runIf(process.platform === 'linux')('/proc', () => {
  it('/proc shows no secret of the server, its hosts and its database', async () => {
    const all = descendants(product.child.pid ?? 0);
    expect(all.length).toBeGreaterThan(2);
    for (const pid of all) {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
      for (const value of Object.values(secrets)) expect(environment).not.toContain(value);
    }
  });

  it('/proc does not show the key of a worker', async () => {
    const worker = await startWorkerProcess(product);
    try {
      const environment = readFileSync(`/proc/${worker.child.pid}/environ`, 'latin1');
      expect(environment).toContain('MILLRACE_URL=');
      expect(environment).not.toContain('mrk_');
    } finally {
      await worker.end('SIGTERM');
    }
  });
});

it('the start prints whether tasks are separated', () => {
  expect(product.output()).toMatch(
    isRoot ? /^ {2}tasks {5}Each task runs as a user of its own/m : /^ {2}tasks {5}Tasks run as /m,
  );
});

describe.runIf(isRoot)('task under root', () => {
  it('a task cannot read files of the home, nor environment and memory of the server', async () => {
    const { home, child } = product;
    const files = readdirSync(home).map((name) => join(home, name));
    expect(files).toContain(join(home, 'root-key'));
    const proc = ['environ', 'mem', 'cwd/', 'fd/'].map((name) => `/proc/${child.pid}/${name}`);
    const tried = [home, ...files, ...proc].map((path) => `(: < ${path}) 2>/dev/null`);
    const tries = tried.map((attempt, i) => `if ${attempt}; then echo opened ${i}; fi`);
    expect(await printed(`${tries.join('\n')}\n(: < /etc/passwd) && echo tried`)).toBe('tried');
  });

  it('a task reaches neither the socket nor the data of the embedded database', async () => {
    const data = readlinkOr(join(product.home, 'postgres'));
    const connect = `require('net').connect('${data}/.s.PGSQL.5432').on('connect',()=>console.log('connected')).on('error',e=>console.log(e.code))`;
    const answer = await printed(`ls ${data} 2>&1 | tail -c 18; '${process.execPath}' -e "${connect}"`);
    expect(answer).toBe('Permission denied\nEACCES');
  });

  it('a task is not root, and starts in a folder of its own if it may not enter that of the server', async () => {
    const [uid, cwd, home] = (await printed('id -u; pwd; echo $HOME')).split('\n');
    expect(uid).not.toBe('0');
    expect(cwd).toBe(home);
  });

  it('a task has no secret of the server in its environment', async () => {
    const environment = await printed('env');
    for (const value of Object.values(secrets)) expect(environment).not.toContain(value);
  });
});

function readlinkOr(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return path;
  }
}
