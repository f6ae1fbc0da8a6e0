/**
 * Flows of every kind with a known end: hosted functions, runs of workers, tasks of people, compensations, times, children, maps and
 * cancellations. All executions of a kind have the same input, so they end with the same status and fields, whatever dies meanwhile.
 */

/** A worker may be lost three times with a run: that is an error, which is tried again. */
const retry = { max_attempts: 50, delay: '100ms', cap: '1s', on: ['error', 'failure', 'timeout'] };

const hosted = (task: string, more: object): object => ({ task, with: { n: '$(f.n)' }, ...more });
const undoOf = (what: string): object[] => [{ task: 'undo', with: { of: what } }];
const item = { task: 'item', with: { n: '$(it)' } };

/** Completed steps are compensated, the last one first. */
const toUndo = [
  hosted('add', { result: 'f.n', undo: undoOf('add') }),
  { each: [1, 2, 3, 4, 5], concurrent: 2, do: [{ ...item, undo: undoOf('item $(it)') }] },
];

const documents = {
  hosted: [
    hosted('add', { result: 'f.n' }),
    { wait: '120ms' },
    hosted('flaky', { result: 'f.n', retry: { max_attempts: 3, delay: '50ms' } }),
    // the signal comes at once, long before anything waits for it
    { wait: { on: { signal: 'go' } }, result: 'f.heard' },
    hosted('add', { result: 'f.n' }),
  ],
  // light, for many at once
  nap: [hosted('add', { result: 'f.n' }), { wait: '2s' }, hosted('add', { result: 'f.n' })],
  saga: [...toUndo, { wait: '100ms' }, { fail: { code: 'boom', message: 'on purpose' } }],
  map: [
    { each: [1, 2, 3, 4, 5, 6, 7, 8, 9], concurrent: 3, do: [item], result: 'f.items' },
    { wait: { on: { signal: 'never' } }, timeout: '200ms', on_timeout: [{ set: { 'f.late': true } }] },
  ],
  parent: [{ call: 'child', with: { n: '$(f.n)' }, result: 'f.child' }, hosted('add', { result: 'f.n' })],
  child: [hosted('add', { result: 'f.n' }), { wait: '100ms' }, { set: { ret: '$(f.n)' } }],
  ticking: [
    {
      on: { every: '1s', missed: 'all' },
      do: [
        { set: { 'f.ticks': '$(f.ticks + 1)' }, when: 'f.ticks < 2' },
        { if: 'f.ticks == 2', then: [{ signal: 'enough' }] },
      ],
    },
    { wait: { on: { signal: 'enough' } } },
  ],
  people: [
    {
      task: 'approve',
      human: { assignee: 'meg', title: 'Approve', form: { approved: 'boolean' } },
      result: 'f.decision',
    },
    hosted('add', { result: 'f.n' }),
  ],
  workers: [
    {
      parallel: [
        { task: 'triple', function: { name: 'triple', input: { n: '$(f.n)' } }, result: 'f.tripled', retry },
        { task: 'quiet', function: { name: 'triple', input: { n: 5 } }, retry },
      ],
      rest: 'wait',
    },
    hosted('add', { result: 'f.n' }),
  ],
  process: [
    { task: 'pack', process: { command: ['sh', '-c', 'printf 7 > "$MILLRACE_RESULT"'] }, result: 'f.packed', retry },
  ],
  cancelled: [...toUndo, { wait: { on: { signal: 'never' } } }],
} as const;

export type FlowKind = keyof typeof documents;

/** Handlers of whole flows. */
const handlers: Partial<Record<FlowKind, object>> = {
  saga: { on_error: [{ do: [{ set: { 'f.why': '$(err.code)' } }] }] },
  cancelled: { on_cancel: [{ set: { 'f.cancelled': true } }] },
};

export const flowDocuments: readonly string[] = Object.entries(documents).map(([flow, steps]) =>
  JSON.stringify({ flow, steps, ...handlers[flow as FlowKind] }),
);

export const flowInput = { n: 1, ticks: 0 } as const;

/** How executions end. Fields are missing where they depend on the moment of the cancellation. */
export const flowEnds: Readonly<Record<FlowKind, { readonly status: string; readonly fields?: object }>> = {
  hosted: { status: 'done', fields: { n: 4, ticks: 0, heard: 'early' } },
  nap: { status: 'done', fields: { n: 3, ticks: 0 } },
  saga: { status: 'done', fields: { n: 2, ticks: 0, why: 'boom' } },
  map: { status: 'done', fields: { n: 1, ticks: 0, items: [2, 4, 6, 8, 10, 12, 14, 16, 18], late: true } },
  parent: { status: 'done', fields: { n: 2, ticks: 0, child: 2 } },
  child: { status: 'done', fields: { n: 2 } },
  ticking: { status: 'done', fields: { n: 1, ticks: 2 } },
  people: { status: 'done', fields: { n: 2, ticks: 0, decision: { approved: true } } },
  workers: { status: 'done', fields: { n: 2, ticks: 0, tripled: 3 } },
  process: { status: 'done', fields: { n: 1, ticks: 0, packed: 7 } },
  cancelled: { status: 'cancelled' },
};

/** What is sent to each execution of a kind, right after its launch. */
export const flowSignals: Partial<Record<FlowKind, { readonly name: string; readonly payload: string }>> = {
  hosted: { name: 'go', payload: 'early' },
};

/** Kinds that are launched, in turn: the heavier ones are rarer. */
export const flowMixture: readonly FlowKind[] = [
  ...(['hosted', 'saga', 'map', 'cancelled', 'parent'] as const),
  ...(['hosted', 'people', 'workers', 'ticking', 'saga'] as const),
  ...(['hosted', 'cancelled', 'map', 'parent', 'process'] as const),
];

/** For thousands at once: all that needs no worker. */
export const lightMixture: readonly FlowKind[] = [
  ...Array.from({ length: 14 }, () => 'nap' as const),
  ...(['hosted', 'saga', 'map', 'cancelled', 'parent', 'people'] as const),
];

/** The `each` of a flow: its position in the tree, and how many items may be under way at once. */
export const flowMaps: Partial<Record<FlowKind, { readonly at: string; readonly concurrent: number }>> = {
  saga: { at: '0_1', concurrent: 2 },
  cancelled: { at: '0_1', concurrent: 2 },
  map: { at: '0_0', concurrent: 3 },
};

/**
 * The module for conductors' `--functions`. Each call adds a line to the file CHAOS_CALLS: its name, its key, and what it undoes. A call
 * takes a moment, so that a process that dies has some under way.
 */
export const flowFunctions = `
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

let calls = 0;
async function note(name, { key }, of = '') {
  appendFileSync(process.env.CHAOS_CALLS, [name, key, of].join('\\t') + '\\n');
  await sleep((calls++ * 7) % 20);
}

export async function add({ n }, call) {
  await note('add', call);
  return n + 1;
}

export async function item({ n }, call) {
  await note('item', call, 'item ' + n);
  return n * 2;
}

// fails at the first attempt
export async function flaky({ n }, call) {
  await note('flaky', call);
  if (call.attempt === 1) throw new Error('not yet');
  return n + 1;
}

export async function undo({ of }, call) {
  await note('undo', call, of);
}
`;

/** `up` hosts fewer functions than other conductors, so that executions move between them. */
export const functionsOfUp = `export { add, flaky, undo } from './flow-functions.mjs';\n`;
