/** Arguments for runtimes in tests: a task with plausible facts, and an output that records everything. */
import { newId } from '../../src/kernel/id.ts';
import type { Output, StreamName, Task, TaskFacts, Work } from '../../src/runtimes/contract.ts';

export function makeTask(work: Work, env: Record<string, string> = {}): Task & { readonly facts: TaskFacts } {
  const run = newId();
  const facts = {
    tenant: 'default',
    run,
    lease: 1,
    instant: '2026-01-02T03:04:05.000Z',
    attempt: 1,
    priority: 'normal',
    params: {},
    task: { id: newId(), name: 'task' },
    job: { id: newId(), name: 'job' },
    project: { id: newId(), name: 'project' },
    node: null,
    url: 'http://127.0.0.1:1',
    credential: 'credential',
    idempotencyKey: run,
  };
  return { work, env, secrets: new Set(), facts };
}

/** Records both streams in order of arrival. */
export class Recorder implements Output {
  readonly pieces: { stream: StreamName; data: Buffer }[] = [];

  write(stream: StreamName, data: Buffer): undefined {
    this.pieces.push({ stream, data });
  }

  bytes(stream?: StreamName): Buffer {
    const wanted = this.pieces.filter((piece) => stream === undefined || piece.stream === stream);
    return Buffer.concat(wanted.map((piece) => piece.data));
  }

  text(stream?: StreamName): string {
    return this.bytes(stream).toString('utf8');
  }
}
