/** Shapes that several endpoints of flows, executions and work items share. */
import { z } from 'zod';
import { nameFault, printableFault } from '../../documents/name.ts';
import { id, instant, time } from '../shapes.ts';

function checkedText(faultOf: (text: string) => string | undefined) {
  return z.string().superRefine((text, context) => {
    const message = faultOf(text);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });
}

export const flowName = checkedText(nameFault).describe('the name of a flow');
export const version = z.coerce
  .number()
  .int()
  .min(1)
  .max(2 ** 31 - 1);
export const revision = z.coerce
  .number()
  .int()
  .min(0)
  .max(2 ** 31 - 1);

/** A key of a launch. */
export const launchKey = checkedText(printableFault).describe(
  'your own name for the execution, at most 200 characters: a second launch with it starts nothing',
);
export const input = z
  .unknown()
  .describe('any JSON, at most a megabyte; the fields of the execution begin as its members');

/** The id of a node: its position in the tree and the number of its visit, such as `0_1-7`. */
export const nodeId = z
  .string()
  .regex(/^0(?:_[a-z]?\d*){0,200}-\d{1,15}$/, { error: 'is not the id of a node, such as 0_1-7' })
  .describe('the id of a node, such as `0_1-7`');

export const executionStatuses = ['running', 'waiting', 'paused', 'incident', 'done', 'failed', 'cancelled'] as const;
export type ExecutionStatus = (typeof executionStatuses)[number];

const statusList = z
  .string()
  .max(200)
  .transform((text, context) => {
    const words = text.split(',').filter((word) => word !== '');
    const wrong = words.find((word) => !(executionStatuses as readonly string[]).includes(word));
    if (wrong === undefined) return words as ExecutionStatus[];
    const message = `unknown status: ${wrong}; the statuses are ${executionStatuses.join(', ')}`;
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  })
  .describe('statuses, separated by commas');

const label = z
  .string()
  .max(1_300)
  .transform((text, context) => {
    const colon = text.indexOf(':');
    if (colon > 0) return { name: text.slice(0, colon), value: text.slice(colon + 1) };
    context.addIssue({ code: 'custom', message: 'write name:value' });
    return z.NEVER;
  })
  .describe('`name:value`: executions with this label');

/** Which executions: of lists, and of operations on many. */
export const executionFilter = {
  flow: flowName.optional(),
  version: version.optional(),
  status: statusList.optional(),
  label: label.optional(),
  key: z.string().max(200).optional(),
  created_after: instant.optional(),
  created_before: instant.optional(),
} as const;

export const idempotencyKey = z.object({
  'Idempotency-Key': z
    .string()
    .max(200)
    .optional()
    .describe('a repetition within 24 hours has no second effect, and is answered with the outcome `known`'),
});

/** What became of a message: 200 after its commit, 202 if it is only stored. */
export const outcome = z.object({
  outcome: z
    .enum(['committed', 'known', 'accepted'])
    .describe('`committed`: it has had its effect; `known`: it came before; `accepted`: it is stored and will have it'),
  detail: z.string().optional().describe('why it is only accepted'),
});
export const outcomeStatuses = {
  202: 'the message is stored, and takes effect when a conductor takes it; `detail` says why it has not',
  404: 'there is no such execution or node',
  409: 'it can have no effect: the execution or the step has ended, or is in another state',
} as const;

export const executionHead = z.object({
  id,
  flow: z.string(),
  version: z.int(),
  status: z.enum(executionStatuses),
  key: z.string().nullable(),
  labels: z.record(z.string(), z.string()),
  rev: z.int().describe('how many commits it has had; 0: its launch is stored, but has not begun'),
  created_at: time,
  updated_at: time,
  ended_at: time.nullable(),
  /** The execution and the node that called it. */
  parent: z.object({ execution: id, node: z.string() }).nullable(),
});

/** The state of a step in the drawing of an execution. */
export type StepState = 'done' | 'running' | 'waiting' | 'incident' | 'failed' | 'cancelled' | 'skipped' | 'idle';

/** A step of the document, with its nodes and the steps inside it. */
export interface TreeStep {
  /** The place in the document: `steps[0].then[1]`; `steps` for the root. */
  readonly path: string;
  /** The position in the tree, with which ids of nodes begin: `0_1`. */
  readonly at: string;
  readonly verb: string;
  /** One line: the name of a task, the condition of an `if`, the duration of a `wait`. */
  readonly title: string;
  readonly tag: string | null;
  /** Which part of the step around it: `then`, `else`, `case de`, `do`, `on_error`, `on_cancel`, `on_timeout`, `undo`. */
  readonly branch: string | null;
  /** The live visits of it. */
  readonly nodes: readonly string[];
  readonly state: StepState;
  readonly children: readonly TreeStep[];
}

/** Nested, which a schema of one answer cannot refer to. */
export const tree = z.custom<TreeStep>().meta({
  type: 'object',
  description:
    '`{path, at, verb, title, tag, branch, nodes, state, children}`; `state` is idle, running, waiting, incident, done, ' +
    'failed, cancelled or skipped, and `children` are the steps inside',
});

export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(1000).default(100).describe('items of a page'),
  cursor: z.string().max(200).optional().describe('`next` of the previous page'),
} as const;

export const pageOf = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), next: z.string().nullable() });
