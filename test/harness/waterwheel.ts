/** Waterwheel's HTTP API as its users know it: a client that works like its own deploy script, and sample documents. */
import { ask, bearer, type Reply } from './ask.ts';
import type { Product } from './product.ts';
import { until } from './until.ts';

/** A row of `GET /api/jobs/{id}/runs/{instant}`. */
export interface RunRow {
  readonly task_id: string;
  readonly task_run_id: string;
  readonly name: string;
  readonly trigger_datetime: string;
  readonly attempt: number;
  readonly state: string;
  readonly priority: string;
}

export interface Waterwheel {
  get(path: string): Promise<Reply>;
  /** Returns the body; the status must be 200. */
  read<T = unknown>(path: string): Promise<T>;
  send(method: string, path: string, body?: unknown): Promise<Reply>;
  /** Deploys a document: an object as JSON, text as YAML, each with the content type that its script sends. */
  deploy(document: object | string, method?: 'PUT' | 'POST'): Promise<Reply>;
  /** The ids of a job's tasks by name. */
  tasks(job: string): Promise<Readonly<Record<string, string>>>;
  /** Waits until all named tasks have a run of the instant in this state, or in any final state; returns all runs. */
  ended(job: string, instant: string, names: readonly string[], state?: string): Promise<RunRow[]>;
}

const final = new Set(['success', 'failure', 'timeout', 'error', 'cancelled']);

export function waterwheel({ url, rootKey }: Pick<Product, 'url' | 'rootKey'>): Waterwheel {
  const get = (path: string): Promise<Reply> => ask(url + path, { headers: bearer(rootKey) });
  const send = (method: string, path: string, body?: unknown): Promise<Reply> =>
    ask(url + path, {
      method,
      headers: { ...bearer(rootKey), ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  async function read<T>(path: string): Promise<T> {
    const reply = await get(path);
    if (reply.status !== 200) throw new Error(`GET ${path} answered ${reply.status}: ${reply.text}`);
    return reply.json() as T;
  }
  return {
    get,
    send,
    read,
    deploy: (document, method = 'PUT') => {
      const yaml = typeof document === 'string';
      const headers = { ...bearer(rootKey), 'content-type': yaml ? 'application/x-yaml' : 'application/json' };
      return ask(`${url}/api/jobs`, { method, headers, body: yaml ? document : JSON.stringify(document) });
    },
    tasks: async (job) => {
      const rows = await read<{ task_id: string; name: string }[]>(`/api/jobs/${job}/tasks`);
      return Object.fromEntries(rows.map((row) => [row.name, row.task_id]));
    },
    ended: async (job, instant, names, state) => {
      let rows: RunRow[] = [];
      const poll = async (): Promise<RunRow[] | undefined> => {
        rows = await read<RunRow[]>(`/api/jobs/${job}/runs/${instant}`);
        const done = rows.filter((row) => (state === undefined ? final.has(row.state) : row.state === state));
        return names.every((name) => done.some((row) => row.name === name)) ? rows : undefined;
      };
      return until(`${names.join(', ')} of ${instant} ended`, poll).catch((error: unknown) => {
        throw new Error(`the only runs are ${JSON.stringify(rows)}`, { cause: error });
      });
    },
  };
}

/** Fan-out and fan-in, a task for failures, and a cleanup after either path; stepD fails. */
export const complexDag = (uuid: string): string => `
uuid: '${uuid}'
project: test_project
name: complex dag
description: a sample job with a complex dag
paused: false
triggers:
  - name: daily
    start: '2022-01-01T00:00:00Z'
    end: '2022-01-02T00:00:00Z'
    period: '1d'
tasks:
  - {name: stepA, depends: [trigger/daily]}
  - {name: stepB1, depends: [task/stepA]}
  - {name: stepB2, depends: [task/stepA]}
  - {name: stepB3, depends: [task/stepA]}
  - {name: stepB4, depends: [task/stepA]}
  - {name: stepB5, depends: [task/stepA]}
  - {name: stepC1, depends: [task/stepB1, task/stepB2, task/stepB3, task/stepB4]}
  - {name: stepC2, depends: [task/stepB4, task/stepB5]}
  - name: stepD
    depends: [task/stepC1, task/stepC2]
    process: {command: [sh, -c, 'exit 3']}
  - {name: stepE, depends: [task/stepB4, task/stepC1]}
  - name: z1_failure
    depends_failure:
      [task/stepA, task/stepB1, task/stepB2, task/stepB3, task/stepB4, task/stepB5, task/stepC1, task/stepC2, task/stepD]
  - {name: z2_success, depends: [task/stepD, task/stepE]}
  - {name: z3_cleanup, depends: [task/z1_failure, task/z2_success], threshold: 1}
`;

/** Each day waits for the day before; a trigger that fires once starts the first day. */
export const dependsOnPast = (uuid: string): string => `
uuid: '${uuid}'
project: test_project
name: depends_on_past
description: |
  a job that waits for its own past
paused: false
triggers:
  - name: initial
    # only once
    start: '2022-01-01T00:00:00Z'
    end: '2022-01-02T00:00:00Z'
    period: '1d'
  - name: daily
    start: '2022-01-01T00:00:00Z'
    end: '2022-01-05T00:00:00Z'
    period: '1d'
tasks:
  - {name: next, depends: [trigger/daily, task/end@1d]}
  - {name: start, threshold: 1, depends: [trigger/initial, task/next]}
  - name: do_work
    depends: [task/start]
    process: {command: [sh, -c, 'echo "job running for $WATERWHEEL_TRIGGER_DATETIME"']}
  - {name: end, depends: [task/do_work]}
`;

/** Offsets on the edges of a trigger and of tasks. */
export const offsets = (uuid: string): object => ({
  uuid,
  project: 'test_project',
  name: 'offset_job',
  description: 'a simple job to test offsets',
  paused: false,
  triggers: [{ name: 'daily', start: '2022-01-01T00:00:00Z', end: '2022-01-02T00:00:00Z', period: '1d' }],
  tasks: [
    { name: 'step1', depends: ['trigger/daily@1h'] },
    { name: 'step2', depends: ['task/step1@1h'] },
    { name: 'final', depends: ['task/step1@1h', 'task/step2'] },
  ],
});

/** One trigger per catch-up policy, over the same three instants. */
export const catchups = (uuid: string): object => {
  const policies = ['none', 'latest', 'earliest', 'random', 'default'];
  const span = { start: '2022-01-01T00:00:00Z', end: '2022-01-01T03:00:00Z', period: '1h' };
  return {
    uuid,
    project: 'test_project',
    name: 'catchup_job',
    description: 'a simple job to test catchup',
    paused: false,
    triggers: policies.map((name) => ({ name, ...span, ...(name === 'default' ? {} : { catchup: name }) })),
    tasks: [
      ...policies.map((name) => ({ name, depends: [`trigger/${name}`] })),
      { name: 'z_final', depends: policies.map((name) => `task/${name}`) },
    ],
  };
};
