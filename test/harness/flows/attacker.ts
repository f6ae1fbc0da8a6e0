/** A client that sends the worst to the flows of the default tenant. No answer may be 500 or more. */
import { expect } from 'vitest';
import type { Product } from '../product.ts';
import { until } from '../until.ts';

export interface Answered {
  readonly status: number;
  readonly text: string;
}

export class Attacker {
  readonly product: Product;

  constructor(product: Product) {
    this.product = product;
  }

  async send(method: string, path: string, body?: unknown): Promise<Answered> {
    const { rootKey, url } = this.product;
    const headers = { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' };
    const sent = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body: sent }) });
    const text = await answer.text();
    expect(answer.status, `${method} ${path}: ${text.slice(0, 300)}`).toBeLessThan(500);
    return { status: answer.status, text };
  }

  async apply(document: unknown, prefix = ''): Promise<number> {
    return (await this.send('POST', `${prefix}/api/flows`, document)).status;
  }

  async launch(flow: string, input: unknown = {}): Promise<string> {
    const { status, text } = await this.send('POST', '/api/executions', { flow, input });
    expect([status, text]).toEqual([expect.toBeOneOf([200, 201, 202]), text]);
    return (JSON.parse(text) as { id: string }).id;
  }

  /** Launches a flow of these steps. */
  async start(steps: readonly unknown[], input: unknown = {}): Promise<string> {
    expect(await this.apply({ flow: 'worst', steps })).toBeLessThan(300);
    return this.launch('worst', input);
  }

  read(id: string) {
    return this.product.call('GET /api/executions/{id}', { params: { id } });
  }

  kill(id: string): Promise<Answered> {
    return this.send('POST', `/api/executions/${id}/kill`);
  }

  /** Lets an execution work while others measure, and ends it. */
  async letWork(id: string, commits: number): Promise<void> {
    await until('it has worked for a while', async () => {
      const { rev, status } = await this.read(id);
      return rev >= commits || !['running', 'waiting'].includes(status) || undefined;
    });
    await this.kill(id);
  }
}
