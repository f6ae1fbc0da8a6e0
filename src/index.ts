/**
 * The package's public entry: run your own functions as Millrace tasks, inside your own process.
 *
 *     const worker = createWorker({ url, key, functions: { greet: (input, { log }) => log(`hello ${input}`) } });
 *     await worker.start();
 *
 * Or drive flows inside your process, with your own functions as their tasks:
 *
 *     const conductor = createConductor({ databaseUrl, functions: { charge: async ({ amount }, { key }) => pay(amount, key) } });
 *     await conductor.start();
 *
 * Or write flows in TypeScript, and test them without a server:
 *
 *     const order = flow<Order>('order', ({ f }) => [s.task(charge, { amount: f.total }).result(f.payment)]);
 *     const t = await testFlow(order, { input: { total: 5 }, tasks: { charge: async () => ({ id: 'p1' }) } });
 */
import { hostname } from 'node:os';
import { z } from 'zod';
import { MillraceError } from './errors.ts';
import { queueFault } from './documents/name.ts';
import { newId } from './kernel/id.ts';
import { makeLog } from './kernel/log.ts';
import { packageVersion } from './kernel/process/package-files.ts';
import { faultWords, shapeFaults } from './kernel/text/shape-faults.ts';
import type { TaskFunctions } from './runtimes/function/function.ts';
import { loadFunctions } from './runtimes/function/file.ts';
import { type WorkKind, workKinds } from './runtimes/kinds.ts';
import { findMissing, makeRuntimes } from './runtimes/runtimes.ts';
import { TaskUsers } from './runtimes/users/task-users.ts';
import { makeWorker } from './worker/worker.ts';

export type { FunctionContext, NodeContext, TaskFunction, TaskFunctions } from './runtimes/function/function.ts';
export type { FlowDocument, FlowOptions } from './flows/builder/flow.ts';
export type { Expr, Given, Path } from './flows/builder/paths.ts';
export type { Participant, Step } from './flows/builder/steps.ts';
export type { FlowTest, OpenStep, TestFlowOptions, TestTask } from './flows/testing/test-flow.ts';
export type { TimelineEntry } from './flows/testing/timeline.ts';
export type { HostedFunction, HostedFunctionMap } from './conductor/functions/in-process.ts';
export type { HostedContext } from './runtimes/function/function.ts';
export type { RunningConductor } from './app/conductor/create-conductor.ts';
export type { CreateConductorOptions } from './app/conductor/open-conductor.ts';
export { createConductor } from './app/conductor/create-conductor.ts';
export { flow } from './flows/builder/flow.ts';
export { x } from './flows/builder/paths.ts';
export { participant, s } from './flows/builder/steps.ts';
export { testFlow } from './flows/testing/test-flow.ts';
export { loadFunctions, MillraceError };

export interface CreateWorkerOptions {
  /** The API's address, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** A key of the role `worker`. */
  readonly key: string;
  /** By the name in a task's `function: {name}`. `loadFunctions` reads them from a file. */
  readonly functions?: TaskFunctions;
  /** The number of runs at once; default: 8. */
  readonly maxTasks?: number;
  /** The queues to serve; default: `default`. */
  readonly queues?: readonly string[];
  /** Default: `none` and `function`, or `none` and `process` without functions. */
  readonly runtimes?: readonly WorkKind[];
  /** Which addresses `http` tasks may reach, beside public ones by https. */
  readonly http?: {
    readonly allowHttp?: boolean;
    /** Private networks, such as `10.1.0.0/16`. */
    readonly allowCidrs?: readonly string[];
  };
  /** How `docker` tasks are executed, and what they may use. */
  readonly containers?: {
    /** Default: as the docker command finds it. */
    readonly host?: string;
    /** The first is the default; default: `bridge`. */
    readonly networks?: readonly string[];
    readonly volumes?: readonly string[];
  };
  /** The account, or the range of user numbers, that `process` tasks run as if this process is root. */
  readonly taskUser?: string;
  /** For display; default: the machine's name. */
  readonly name?: string;
  /** A level of pino; default: `warn`. */
  readonly logLevel?: string;
}

export interface RunningWorker {
  /** Returns once the worker is running. If the API cannot be reached yet, the worker retries in the background. */
  start(): Promise<void>;
  /** Claims no more runs, waits five seconds for running tasks, and returns the unfinished runs. */
  stop(): Promise<void>;
}

const checked = z.object({
  url: z.url({ protocol: /^https?$/ }),
  key: z.string().min(1),
  maxTasks: z.int().min(1).max(10_000).optional(),
  queues: z
    .array(z.string().refine((name) => queueFault(name) === undefined, 'not the name of a queue'))
    .min(1)
    .max(100)
    .optional(),
  runtimes: z.array(z.enum(workKinds)).min(1).optional(),
  http: z.object({ allowHttp: z.boolean().optional(), allowCidrs: z.array(z.string()).optional() }).optional(),
  containers: z
    .object({
      host: z.string().min(1).optional(),
      networks: z.array(z.string().min(1)).optional(),
      volumes: z.array(z.string().min(1)).optional(),
    })
    .optional(),
  taskUser: z.string().min(1).optional(),
  name: z.string().min(1).max(200).optional(),
});

export function createWorker(options: CreateWorkerOptions): RunningWorker {
  validateOptions(options);
  const functions = options.functions ?? {};
  const usual: WorkKind[] = Object.keys(functions).length > 0 ? ['none', 'function'] : ['none', 'process'];
  const kinds = options.runtimes ?? usual;
  const log = makeLog({ level: options.logLevel ?? 'warn', role: 'worker' });
  const users = new TaskUsers({ wish: options.taskUser, log });
  const equipment = {
    functions,
    environment: process.env,
    users,
    http: options.http,
    containers: options.containers,
    log,
  };
  rejectMissingRuntimes(options.runtimes ?? [], equipment);
  const worker = makeWorker({
    ...options,
    id: newId(),
    name: options.name ?? hostname(),
    version: packageVersion,
    log,
    runtimes: (identity) => makeRuntimes(kinds, { ...equipment, worker: identity }),
  });
  return {
    start: () => worker.start(),
    async stop() {
      await worker.stop();
      await users.stop();
    },
  };
}

function validateOptions(options: CreateWorkerOptions): void {
  const parsed = checked.safeParse(options, faultWords);
  if (parsed.success) return;
  const faults = shapeFaults(parsed.error.issues);
  const list = faults.map((fault) => `${fault.path}: ${fault.message}`).join('; ');
  throw new MillraceError('bad_configuration', `The worker cannot be created: ${list}`, { faults });
}

/** Throws for a runtime that is not available: the worker would wait for its runs in vain. */
function rejectMissingRuntimes(kinds: readonly WorkKind[], equipment: Parameters<typeof findMissing>[1]): void {
  const faults = findMissing(kinds, equipment).map(({ kind, reason }) => ({
    path: 'runtimes',
    message: `${kind}: ${reason}`,
  }));
  if (faults.length === 0) return;
  const reasons = faults.map(({ message }) => message).join('; ');
  throw new MillraceError('bad_configuration', `The worker cannot be created: runtimes: ${reasons}`, { faults });
}
