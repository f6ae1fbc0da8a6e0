/**
 * The shapes of flow documents: the fields of each verb, and of every step. The validator and the JSON Schema follow them.
 *
 * Rules that need more than one field, and everything about expressions, are in `read-step.ts` and `read-verbs.ts`.
 */
import { z } from 'zod';
import { readCron } from '../../calendar/cron-walk.ts';
import { zoneFault } from '../../calendar/zone.ts';
import { faultOf, largestInteger, name, span, text } from '../../documents/fields.ts';
import { queueFault } from '../../documents/name.ts';
import { http } from '../../runtimes/http/block.ts';
import { documentedKinds } from '../../runtimes/kinds.ts';
import type { Verb } from './step.ts';
import { targetPattern } from './target.ts';

/** Marks where the JSON Schema refers to the definition of a list of steps. */
export const stepsMark = 'x-steps';

function steps(description: string) {
  return z
    .array(z.unknown())
    .describe(description)
    .meta({ [stepsMark]: true });
}

/** A value with expressions: any JSON. */
function value(description: string) {
  return z.unknown().describe(description);
}

function condition(description: string) {
  return z
    .union([z.string(), z.boolean()], { error: 'must be an expression' })
    .describe(`${description} An expression, with or without \`$(…)\`.`);
}

/** A duration such as `5m`, or an expression that gives one. */
function duration(description: string) {
  return text(() => undefined, { minLength: 1, examples: ['30s', '2h', '$(f.limit)'] }).describe(description);
}

const tagName = text(
  (value) => (/^[A-Za-z_][\w-]{0,99}$/.test(value) ? undefined : 'must be letters, digits, _ and -'),
  { pattern: '^[A-Za-z_][\\w-]{0,99}$' },
);

const targetText = text(
  (value) => (targetPattern.test(value) ? undefined : 'must be a path such as f.order, v.count or ret'),
  { pattern: '^(ret|[fv](\\.[A-Za-z_][\\w-]*)+)$', examples: ['f.order', 'v.count'] },
);

const missed = z
  .enum(['skip', 'one', 'all'])
  .optional()
  .describe('What to do about times that have passed meanwhile: `skip` them, handle `one` (default), or `all`.');

const eventSpec = z
  .strictObject({
    signal: z.string().min(1).optional().describe('A signal of this name.'),
    match: condition('Only signals for which this holds. `event` has the `name` and the `payload`.').optional(),
    entered: tagName.optional().describe('A step with this tag has begun.'),
    left: tagName.optional().describe('A step with this tag has ended.'),
    every: duration('Again and again after this time.').optional(),
    cron: text(faultOf(readCron), { examples: ['0 9 * * mon-fri'] })
      .optional()
      .describe('At the times of a cron expression.'),
    timezone: text(zoneFault, { examples: ['Europe/Berlin'] })
      .optional()
      .describe('The zone of `cron`. Default UTC.'),
    missed,
  })
  .meta({ title: 'Event', description: 'What to wait for.' });

const tagOrTrue = z.union([z.literal(true), tagName], { error: 'must be true, or the tag of a loop' });

export const retryShape = z
  .strictObject({
    max_attempts: z.int().min(1).max(largestInteger).describe('Attempts in all, the first included.'),
    delay: span({}, ['2s', '5m']).optional().describe('The pause before the second attempt. Default 1s.'),
    factor: z.number().min(1).max(1000).optional().describe('Each further pause is longer by this factor. Default 2.'),
    cap: span({}, ['1m']).optional().describe('No pause is longer than this. Default 1h.'),
    jitter: z.number().min(0).max(1).optional().describe('The random share of each pause, from 0 to 1. Default 0.'),
    on: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe('Codes of errors that lead to another attempt. `error` stands for all but `timeout`. Default: all.'),
  })
  .meta({ title: 'Retry', description: 'Try again if the step fails. Without it there is one attempt.' });

export const handlerShape = z.strictObject({
  match: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe('A code of errors, several codes, or a condition in `$(…)` over `err`. Without it, every error matches.'),
  do: steps('What to do then. `err` has `code`, `message`, `data` and `node`.'),
});

/** What every step may have beside its verb. */
export const attributeShape = {
  tag: tagName.optional().describe('A name, for `cancel`, `break`, events, and the people who look at it.'),
  when: condition('The step is skipped unless this holds.').optional(),
  timeout: duration('The step is cancelled after this time, all its attempts together.').optional(),
  retry: retryShape.optional(),
  on_error: z
    .array(z.unknown())
    .optional()
    .describe(
      'What to do if the step fails: steps, or handlers `{match, do}`, of which the first that matches is used.',
    )
    .meta({ [stepsMark]: 'handlers' }),
  on_cancel: steps('What to do after the step was cancelled, but not if it was killed.').optional(),
  on_timeout: steps('What to do after `timeout`, instead of failing.').optional(),
  vars: z.record(z.string(), z.unknown()).optional().describe('Variables that exist inside the step only: `v.name`.'),
  background: z
    .boolean()
    .optional()
    .describe('The next step begins at once. This one is cancelled when the steps around it have ended.'),
  result: targetText.optional().describe('Where the result is kept: `f.path`, `v.path` or `ret`.'),
  undo: steps('What compensates the step if a step around it fails, times out or is cancelled later.').optional(),
};

/** Runtime blocks of tasks, as in job documents. */
const runtimeShape = Object.fromEntries(documentedKinds.map(({ kind, schema }) => [kind, schema.optional()]));

/** As in job documents. Only a flow can wait for an answer that comes later. */
const httpShape = http.schema
  .extend({
    callback: duration(
      'The step ends with the answer that comes by the link of the request, within this time.',
    ).optional(),
  })
  .meta({
    title: 'HTTP',
    description: 'Send a request. Its result is `{status, headers, body}`, or the answer to `callback`.',
  });

const humanShape = z
  .strictObject({
    assignee: z.string().optional().describe('The person who answers.'),
    team: z.string().optional().describe('Or the team, of which one person claims it.'),
    title: z.string().min(1).describe('One line that says what to decide.'),
    form: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('The fields of the answer: `{approved: boolean, comment: text}`.'),
    due: duration('Only shown; use `timeout` to act.').optional(),
  })
  .meta({ title: 'Human', description: 'A person answers a form, signed in or by a link.' });

const concurrent = z.int().min(1).max(10_000);
const merge = z
  .enum(['first', 'last', 'ignore'])
  .optional()
  .describe(
    'What becomes of fields that branches set: those of the `first` answer win (default), those of the `last`, or `ignore`.',
  );

/** The fields of each verb beside the attributes. The verb's own field comes first. */
export const verbShapes = {
  sequence: { sequence: steps('Steps, one after the other.') },
  parallel: {
    parallel: steps('Branches that run at the same time. Its result is the list of their results.'),
    expect: z.int().min(1).optional().describe('It ends after so many answers. Default: all.'),
    rest: z.enum(['cancel', 'wait']).optional().describe('What becomes of the other branches then. Default `cancel`.'),
    merge,
    concurrent: concurrent.optional().describe('At most so many branches at a time.'),
  },
  if: {
    if: condition('The condition.'),
    then: steps('What to do if it holds.'),
    else: steps('What to do otherwise.').optional(),
  },
  switch: {
    switch: value('An expression, with or without `$(…)`.'),
    cases: z
      .record(z.string(), z.unknown())
      .describe('Steps by the value as text.')
      .meta({ [stepsMark]: 'cases' }),
    else: steps('What to do if no case fits.').optional(),
  },
  loop: {
    loop: steps('What to repeat.'),
    while: condition('Tested before each round.').optional(),
    until: condition('Tested after each round.').optional(),
    every: duration('The pause between two rounds.').optional(),
    max: z.int().min(1).optional().describe('The step fails with `loop_limit` after so many rounds. Default 10000.'),
  },
  each: {
    each: z.union([z.string(), z.array(z.unknown())], { error: 'must be a list, or an expression' }),
    do: steps('What to do with each item: `it`, with `index`, and `key` if the items are those of a map.'),
    concurrent: concurrent.optional().describe('So many items at a time. Default 1.'),
    merge,
  },
  task: {
    task: name.describe('The name of a function that a conductor hosts, or of this task if a block says what runs it.'),
    with: value('The input.').optional(),
    ...runtimeShape,
    http: httpShape.optional(),
    human: humanShape.optional(),
    queue: text(queueFault, {}).optional().describe('Only workers that serve this queue run it. Default `default`.'),
    pool: name.optional().describe('A pool whose places it needs.'),
    priority: z.enum(['high', 'normal', 'low']).optional().describe('Default `normal`.'),
  },
  call: {
    call: z.string().min(1).describe('The name of another flow.'),
    with: value('Its input.').optional(),
    mode: z.enum(['child', 'detached']).optional().describe('`child` (default) waits for its result.'),
  },
  wait: {
    wait: z
      .union(
        [
          duration('For this time.'),
          z.strictObject({
            for: duration('At most for this time.').optional(),
            until: text(() => undefined, { minLength: 1 })
              .optional()
              .describe('Until this moment.'),
            on: z
              .union([eventSpec, z.array(eventSpec).min(1)])
              .optional()
              .describe('Until the first of these.'),
          }),
        ],
        { error: 'must be a duration, or a mapping with for, until or on' },
      )
      .describe('Wait for a time, or for an event. The result is the payload of the event, or null.'),
  },
  on: {
    on: eventSpec,
    do: steps('What to do at each event. `event` has its `name`, `payload`, and `planned_at` of times.'),
    count: z.int().min(1).optional().describe('Ends after so many events.'),
    mode: z
      .enum(['queue', 'parallel'])
      .optional()
      .describe('Events are handled one after the other (`queue`, default), or at the same time.'),
  },
  signal: {
    signal: z.string().min(1).describe('The name.'),
    to: z.string().min(1).optional().describe('The id of another execution. Default: this one.'),
    payload: value('What it carries.').optional(),
  },
  set: { set: z.record(targetText, z.unknown()).describe('Values by path. All are computed before the first is set.') },
  fail: {
    fail: z
      .union([
        z.string(),
        z.strictObject({
          code: z.string().min(1),
          message: z.string().optional(),
          data: z.unknown().optional(),
        }),
      ])
      .describe('`{code, message, data}`, or an expression such as `$(err)`.'),
  },
  cancel: {
    cancel: tagName.describe('The tag of the steps to cancel.'),
    kill: z.boolean().optional().describe('Without `undo` and `on_cancel`.'),
  },
  break: { break: tagOrTrue.describe('Ends the nearest `loop` or `each`, or the one with this tag.') },
  continue: {
    continue: tagOrTrue.describe('Begins the next round of the nearest `loop`, or of the one with this tag.'),
  },
} as const satisfies Readonly<Record<Verb, Readonly<Record<string, z.ZodType>>>>;

type ShapeOf<V extends Verb> = (typeof verbShapes)[V] extends infer S extends z.core.$ZodShape ? S : never;

/** The fields of a step that has passed the schema of its verb. */
export type StepData<V extends Verb> = z.infer<z.ZodObject<ShapeOf<V> & typeof attributeShape>>;
export type AttributeData = z.infer<z.ZodObject<typeof attributeShape>>;

export const verbSchemas = Object.fromEntries(
  Object.entries(verbShapes).map(([verb, shape]) => [
    verb,
    z.strictObject({ ...shape, ...attributeShape }).meta({ title: verb }),
  ]),
) as unknown as Readonly<Record<Verb, z.ZodObject>>;

/** The top of a document. */
export const flowShape = z
  .strictObject({
    flow: name.describe('The name. Applying another document of this name makes a new version.'),
    description: z.string().optional().describe('A text for readers. It has no effect.'),
    project: name.optional().describe('The project whose stash and configuration the tasks use.'),
    labels: z.record(z.string(), z.unknown()).optional().describe('Values to search executions by, of the input.'),
    sealed: z
      .array(text((value) => (/^f\.[A-Za-z_]\w*$/.test(value) ? undefined : 'must be a field such as f.card')))
      .optional()
      .describe('Fields that are stored encrypted, and shown to tasks only.'),
    defaults: z
      .strictObject({
        retry: retryShape.optional(),
        timeout: duration('The timeout of each task without one.').optional(),
      })
      .optional()
      .describe('For all tasks that do not say otherwise.'),
    steps: steps('What to do, one after the other.'),
    timeout: attributeShape.timeout,
    on_error: attributeShape.on_error,
    on_cancel: attributeShape.on_cancel,
    on_timeout: attributeShape.on_timeout,
    vars: attributeShape.vars,
  })
  .meta({ title: 'Flow', description: 'A tree of steps that executions of the flow follow.' });
