/**
 * The API's side of the wire, for tests of the worker: a real HTTP server that parses every message with the wire's own
 * schemas, hands out the runs it was given, records all requests, and can be made to fail for a while.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import {
  type ClaimedRun,
  claimRequest,
  definitionsRequest,
  type Failure,
  type HeartbeatRequest,
  type HeldRun,
  heartbeatRequest,
  type Invalidation,
  type LogChunk,
  type NodeWork,
  logsRequest,
  type Report,
  type RuntimeBlock,
  reportRequest,
  type Seen,
  type Signals,
  type TaskRun,
  secretsRequest,
  type TaskDefinition,
} from '../../src/contract/wire.ts';
import { newId } from '../../src/kernel/id.ts';

export const wireKey = 'worker-key';
const defaultTenantId = newId();

interface OfferedNode {
  readonly timeoutMs?: number;
  readonly params?: Record<string, unknown>;
  readonly attempt?: number;
}

export class WireServer {
  readonly reports: Report[] = [];
  readonly chunks: LogChunk[] = [];
  readonly heartbeats: HeartbeatRequest[] = [];
  readonly polls: z.infer<typeof claimRequest>[] = [];
  readonly secrets = new Map<string, string>();
  /** Stash entries that cannot be decrypted. */
  readonly sealed = new Set<string>();
  /** Names of requests that were served, in order: `logs`, `report`… */
  readonly served: string[] = [];
  /** Names of requests that arrived while the server was out of order, or that are never answered. */
  readonly refused: string[] = [];
  /** Sent with every answer, because a worker may miss one. */
  readonly cancel: HeldRun[] = [];
  readonly lost: HeldRun[] = [];
  /** Sent to a worker until it confirms them. */
  readonly invalidate: Invalidation[] = [];
  /** Names of messages, such as `report`, that are never answered. */
  readonly unanswered = new Set<string>();
  /** Heartbeat interval that is sent to workers. */
  beatMs: number | undefined;
  /** While set, everything is answered with this status; 0 cuts the connection. */
  outOfOrder: number | undefined;
  /** Tenants that cannot be served: answers list them as failed, and nothing of theirs is recorded. */
  readonly away = new Set<string>();
  /** Ids of workers whose heartbeats are refused. */
  readonly refusedIds = new Set<string>();
  /** A worker that knows another epoch has missed all invalidations. */
  epoch = newId();
  readonly #definitions = new Map<string, TaskDefinition>();
  readonly #kinds = new Map<string, string>();
  readonly #ready: ClaimedRun[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #server: Server = createServer((request, response) => void this.#answer(request, response));

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  define(runtime: RuntimeBlock, timeoutMs = 60_000, tenant = defaultTenantId): TaskDefinition {
    const named = (name: string): { id: string; name: string } => ({ id: newId(), name });
    const key = { tenant, task: newId(), version: 1 };
    const definition = {
      ...key,
      name: 'task',
      job: named('job'),
      project: named('project'),
      timeout_ms: timeoutMs,
      params: {},
      runtime,
    };
    this.#definitions.set(key.task, definition);
    this.#kinds.set(key.task, runtime.kind);
    return definition;
  }

  forget(definition: TaskDefinition): void {
    this.#definitions.delete(definition.task);
  }

  /** Makes a run ready. */
  offer(definition: TaskDefinition, more: Partial<TaskRun> = {}): TaskRun {
    const { tenant, task, version } = definition;
    const held = { tenant, tenant_name: 'default', run: newId(), lease: 1 };
    const handOut = { ...held, engine: '0.1.0', task, version, credential: 'run-credential' };
    const run = {
      ...handOut,
      instant: '2026-01-02T03:04:05.000Z',
      attempt: 1,
      priority: 'normal' as const,
      params: {},
      ...more,
    };
    this.#ready.push(run);
    this.wake();
    return run;
  }

  /** Makes a run of a node ready. */
  offerNode(runtime: RuntimeBlock, nid: string, more: OfferedNode = {}): ClaimedRun & { readonly node: NodeWork } {
    const { timeoutMs = 60_000, params = {}, attempt = 1 } = more;
    const held = { tenant: defaultTenantId, tenant_name: 'default', run: newId(), lease: 1, engine: '0.2.0' };
    const node = { execution: newId(), id: nid, name: 'ship', timeout_ms: timeoutMs, project: null, runtime };
    const run = { ...held, attempt, priority: 'normal' as const, params, credential: 'run-credential', node };
    this.#ready.push(run);
    this.wake();
    return run;
  }

  /** Ends waiting polls, so that they look for runs again or return signals. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }

  report(run: HeldRun): Report | undefined {
    return this.reports.find((report) => report.run === run.run && report.lease === run.lease);
  }

  output(run: HeldRun, stream?: 'out' | 'err'): string {
    const own = this.chunks.filter(
      (chunk) => chunk.run === run.run && (stream === undefined || chunk.stream === stream),
    );
    const ordered = own.toSorted((a, b) => a.number - b.number);
    return Buffer.concat(ordered.map((chunk) => Buffer.from(chunk.data, 'base64'))).toString('utf8');
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const name = (request.url ?? '').replace('/internal/', '');
    const body = await bodyOf(request);
    if (this.outOfOrder !== undefined || this.unanswered.has(name)) this.refused.push(name);
    if (this.unanswered.has(name)) return;
    if (this.outOfOrder === 0) return void request.socket.destroy();
    const [status, answer] = await this.#decide(name, request.headers.authorization, body, response);
    if (status === 200) this.served.push(name);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  }

  async #decide(
    name: string,
    key: string | undefined,
    body: unknown,
    response: ServerResponse,
  ): Promise<[number, unknown]> {
    if (this.outOfOrder !== undefined) return [this.outOfOrder, { detail: 'out of order' }];
    if (name === 'secrets' && this.away.has(secretsRequest.parse(body).tenant)) return [503, awayProblem];
    if (name === 'secrets' && secretsRequest.parse(body).names.some((each) => this.sealed.has(each)))
      return [422, sealedProblem];
    if (name === 'heartbeat' && this.refusedIds.has(heartbeatRequest.parse(body).worker))
      return [403, { code: 'worker_refused', detail: 'rejected by the test' }];
    if (key !== `Bearer ${wireKey}`) return [401, { detail: 'no such key' }];
    try {
      return [200, await this.#serve(name, body, response)];
    } catch (error) {
      return [error instanceof z.ZodError ? 400 : 500, { detail: String(error) }];
    }
  }

  #serve(name: string, body: unknown, response: ServerResponse): unknown {
    if (name === 'claim') return this.#claim(claimRequest.parse(body), response);
    if (name === 'heartbeat') {
      const heartbeat = heartbeatRequest.parse(body);
      this.heartbeats.push(heartbeat);
      return { ...this.#signals(heartbeat.seen), beat_ms: this.beatMs };
    }
    if (name === 'report') {
      const { reports } = reportRequest.parse(body);
      const [taken, failed] = this.#separate(reports);
      this.reports.push(...taken.filter((report) => !this.report(report)));
      return { accepted: reports.length, failed };
    }
    if (name === 'logs') {
      const { chunks } = logsRequest.parse(body);
      const known = new Set(this.chunks.map((chunk) => `${chunk.run}/${chunk.lease}/${chunk.number}`));
      const [taken, failed] = this.#separate(chunks);
      this.chunks.push(...taken.filter((chunk) => !known.has(`${chunk.run}/${chunk.lease}/${chunk.number}`)));
      return { accepted: chunks.length, failed };
    }
    if (name === 'definitions') {
      const { items } = definitionsRequest.parse(body);
      const [taken, failed] = this.#separate(items);
      return { definitions: taken.flatMap(({ task }) => this.#definitions.get(task) ?? []), failed };
    }
    const { names } = secretsRequest.parse(body);
    const found = names.filter((each) => this.secrets.has(each));
    return {
      values: Object.fromEntries(
        found.map((each) => [each, Buffer.from(this.secrets.get(each) ?? '').toString('base64')]),
      ),
    };
  }

  async #claim(poll: z.infer<typeof claimRequest>, response: ServerResponse): Promise<unknown> {
    this.polls.push(poll);
    if (poll.free === 0 || !this.#ready.some((run) => this.#isServedBy(run, poll))) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          this.#waiting.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, poll.wait_ms);
        this.#waiting.add(wake);
        response.once('close', wake);
      });
    }
    // a poll whose sender has disconnected gets nothing
    const runs = response.destroyed ? [] : this.#ready.filter((run) => this.#isServedBy(run, poll)).slice(0, poll.free);
    for (const run of runs) this.#ready.splice(this.#ready.indexOf(run), 1);
    return { runs, ...this.#signals(poll.seen) };
  }

  /** A run whose definition is gone is of the kind that it had. */
  #isServedBy(run: ClaimedRun, poll: z.infer<typeof claimRequest>): boolean {
    const kind = run.node?.runtime.kind ?? this.#kinds.get(run.task ?? '');
    return poll.runtimes.includes(kind ?? 'none');
  }

  /** Separates items of tenants that can be served from failures of the others. */
  #separate<T extends { tenant: string }>(items: readonly T[]): [T[], Failure[]] {
    const names = [...new Set(items.map((item) => item.tenant))].filter((tenant) => this.away.has(tenant));
    const failed = names.map((tenant) => ({ tenant, code: 'tenant_unavailable', detail: 'out of reach' }));
    return [items.filter((item) => !this.away.has(item.tenant)), failed];
  }

  #signals(seen: Seen): Signals {
    const { cancel, lost, invalidate, epoch } = this;
    const known = seen[epoch] ?? invalidate.length;
    return { cancel, lost, invalidate: invalidate.slice(known), epoch, newest: invalidate.length };
  }
}

const awayProblem = { status: 503, code: 'tenant_unavailable', detail: 'out of reach' };
const sealedProblem = { status: 422, code: 'undecryptable', detail: 'stash entry key: of another key' };

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return JSON.parse(Buffer.concat(parts).toString('utf8'));
}
