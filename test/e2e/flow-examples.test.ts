/** The flows of examples/flows, each from its start to its end, on the product with the functions of that folder. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { makeTaskFolder } from '../harness/task-folder.ts';
import { until } from '../harness/until.ts';

const examples = fileURLToPath(new URL('../../examples/flows/', import.meta.url));
let product: Product;
let programs = '';
let mail: Server;
const mails: string[] = [];

beforeAll(async () => {
  programs = await makeTaskFolder();
  await writeFile(join(programs, 'ship'), '#!/bin/sh\ntest "$TOKEN" = secret && echo "shipped $2"\n');
  await chmod(join(programs, 'ship'), 0o755);
  mail = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      mails.push(body);
      response.end();
    });
  });
  await new Promise<void>((resolve) => mail.listen(0, '127.0.0.1', resolve));
  product = await startProduct({
    args: ['--functions', join(examples, 'functions.js')],
    env: {
      MILLRACE_LOG: 'info',
      MILLRACE_HTTP_ALLOW_HTTP: 'true',
      MILLRACE_HTTP_ALLOW_CIDRS: '127.0.0.0/8',
      PATH: `${programs}:${process.env['PATH'] ?? ''}`,
    },
  });
  expect(await run('flow', 'apply', '-f', examples)).toMatchObject({ code: 0 });
}, 120_000);
afterAll(async () => {
  mail?.close();
  await product?.stop();
  if (product !== undefined) await removeHome(product.home);
});

function run(...args: string[]): Promise<Answer> {
  return millrace(args, { home: product.home });
}

/** Applies a flow with another text at one place, because its time or address is not that of a test. */
async function applyWith(name: string, from: string, to: string): Promise<void> {
  const text = await readFile(join(examples, `${name}.yaml`), 'utf8');
  expect(text).toContain(from);
  const input = text.replace(from, to);
  expect(await millrace(['flow', 'apply', '-f', '-'], { home: product.home, input })).toMatchObject({ code: 0 });
}

async function start(name: string, input: unknown): Promise<string> {
  const started = await run('flow', 'start', name, '--input', JSON.stringify(input));
  expect(started, started.stderr).toMatchObject({ code: 0 });
  return started.stdout.trim();
}

async function ended(id: string) {
  return until(`the execution ${id} has ended`, async () => {
    const execution = await product.call('GET /api/executions/{id}', { params: { id }, query: {} });
    return execution.ended_at === null ? undefined : execution;
  });
}

const order = { order: { id: 'o1', items: ['a'], total: 5, card: 'c', email: 'eve@shop.example', customer: 'ann' } };

describe('examples/flows', () => {
  it('expense: a person decides by the work item, and the amount is paid', async () => {
    const id = await start('expense', { id: 'e1', amount: 12, manager: 'meg', employee: 'eve' });
    const listed = await until('somebody is asked', async () => {
      const { stdout } = await run('workitems', 'list', '--execution', id);
      return stdout.includes('Expense e1') ? stdout : undefined;
    });
    expect(listed).toContain('meg');
    expect(await run('workitems', 'answer', id, 'approved=true')).toMatchObject({ code: 0, stdout: 'answered\n' });
    expect(await ended(id)).toMatchObject({ status: 'done', result: { paid: 12 } });
  });

  it('order: everything is done, by functions, a program and a request', async () => {
    const { port } = mail.address() as AddressInfo;
    await millrace(['stash', 'set', 'carrier'], { home: product.home, input: 'secret' });
    await applyWith('order', 'https://mail.internal/send', `http://127.0.0.1:${port}/send`);
    const execution = await ended(await start('order', order));
    expect(execution, JSON.stringify(execution.error)).toMatchObject({ status: 'done', labels: { customer: 'ann' } });
    expect(mails.map((text) => JSON.parse(text) as unknown)).toEqual([{ to: 'eve@shop.example' }]);
  });

  it('order: without its program, what was done is undone, and the customer is told', async () => {
    await applyWith('order', 'command: [ship,', 'command: [no-such-program,');
    const execution = await ended(await start('order', order));
    expect(execution).toMatchObject({ status: 'failed', error: { code: 'error' } });
    for (const line of ['refunded p-', 'released r-1', 'your order has failed: error'])
      expect(product.output()).toContain(line);
  });

  it('thumbnails: an image that cannot be read does not stop the others', async () => {
    const images = ['a.png', 'b.txt', 'c.png'].map((name) => ({ url: `https://img.example/${name}` }));
    const ran = await run('flow', 'start', 'thumbnails', '--wait', '--input', JSON.stringify({ images }));
    expect(ran, ran.stderr).toMatchObject({ code: 0 });
    expect(JSON.parse(ran.stdout)).toEqual({ pages: 2 });
  });

  it('export: the status is asked until it is done', async () => {
    await applyWith('export', 'every: 30s', 'every: 1s');
    expect(await ended(await start('export', {}))).toMatchObject({
      status: 'done',
      fields: { status: { state: 'done' } },
    });
  });

  it('morning-digest: each tick sends a digest, until it is told to stop', async () => {
    await applyWith('morning-digest', "{cron: '0 9 * * mon-fri', timezone: Europe/Berlin, missed: one}", '{every: 1s}');
    const id = await start('morning-digest', {});
    await until('a digest was sent', () => product.output().includes('sent 1 stories') || undefined);
    expect(await run('flow', 'signal', id, 'stop')).toMatchObject({ code: 0, stdout: 'signal stop sent\n' });
    expect(await ended(id)).toMatchObject({ status: 'done' });
  });
});
