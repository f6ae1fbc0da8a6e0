/**
 * The shape of a job document: its fields, with their types and meanings.
 *
 * This is the validator and, through `json-schema.ts`, also the published JSON Schema, whose descriptions editors display.
 * Rules about more than one field are in `checks.ts`. An optional field may be null, which means the same as absent, because
 * Waterwheel writes its documents that way.
 */
import { z } from 'zod';
import { isId } from '../../kernel/id.ts';
import { readCron } from '../../calendar/cron-walk.ts';
import { catchups, forever, overlaps, retryCauses } from '../definition.ts';
import { choice, faultOf, instant, largestInteger, name, paramFault, span, text } from '../../documents/fields.ts';
import { type DocumentedWorkKind, documentedKinds } from '../../runtimes/kinds.ts';
import { zoneFault } from '../../calendar/zone.ts';
import { queueFault } from '../../documents/name.ts';
import { readSpan } from '../../documents/values.ts';
import { parseReference } from '../reference.ts';

const reference = text(faultOf(parseReference), {
  pattern: '^([^/@]+/){0,2}(task|trigger)/[^/@]+(@.+)?$',
  examples: ['trigger/daily', 'task/extract', 'other job/task/load', 'task/end@1d'],
});

const triggerSchema = z
  .strictObject({
    name: name.describe('Unique among the triggers of the job; tasks refer to it as `trigger/<name>`.'),
    start: instant.describe(
      'The first instant, RFC 3339 with an offset. It always fires, even if `cron` does not name it.',
    ),
    end: instant.nullish().describe('Only instants before this one fire. Left out: no end.'),
    period: span({ leastMs: 1000 }, ['1d', '1h 30m', 'PT15M'])
      .nullish()
      .describe(
        'Time between instants, at least 1s: `1d`, `1h 30m`, `PT15M`. Exactly one of `period` and `cron`. ' +
          'With a `timezone`, a period of whole days keeps the wall-clock time of `start`.',
      ),
    cron: text(faultOf(readCron), { examples: ['0 6 * * mon-fri', '0 30 2 * * *', '@daily'] })
      .nullish()
      .describe(
        'Five fields (minute hour day month weekday; Sunday is 0 or 7; if both day fields are restricted, one ' +
          'must match), or six or seven (second first, year last; Sunday is 1; both day fields must match), or `@hourly`, ' +
          '`@daily`, `@weekly`, `@monthly`, `@yearly`. Exactly one of `period` and `cron`.',
      ),
    timezone: text(zoneFault, { examples: ['Europe/Berlin', 'America/New_York'] })
      .nullish()
      .describe(
        'IANA name of the zone whose wall clock `cron` (or a `period` of whole days) follows. Left out: UTC. ' +
          'Named hours run once a day, even when clocks change; wildcard and stepped hours follow elapsed time.',
      ),
    offset: span({ signed: true }, ['10m', '-3m'])
      .nullish()
      .describe('Fire this long after the instant, or before it with a leading `-`. The instant itself does not move.'),
    catchup: z
      .enum(catchups)
      .nullish()
      .describe(
        'What to do about instants missed while the scheduler was down or the job paused: `earliest` (default: run all, ' +
          'oldest first), `latest` (all, newest first), `random` (all, shuffled), `last` (only the newest), `none`.',
      ),
    catchup_window: span({}, ['7d', '12h'])
      .nullish()
      .describe('Missed instants that are older than this are not caught up. Left out: no limit.'),
  })
  .meta({
    title: 'Trigger',
    description: 'Fires at instants, and starts the tasks that depend on it.',
    ...choice({ period: 'string', cron: 'string' }, true),
  });

const retrySchema = z
  .strictObject({
    max_attempts: z.int().min(1).max(largestInteger).describe('Attempts in all, the first included.'),
    delay: span({}, ['30s', '5m']).nullish().describe('Wait before the second attempt. Default 5m.'),
    factor: z
      .number()
      .min(1)
      .max(1000)
      .nullish()
      .describe('Factor by which each further wait grows. Default 1: all waits are equal.'),
    cap: span({}, ['1h']).nullish().describe('No wait is longer than this. Left out: no limit.'),
    jitter: z
      .number()
      .min(0)
      .max(1)
      .nullish()
      .describe(
        'Random share of each wait, from 0 to 1, so that many tasks do not retry at the same moment. Default 0.',
      ),
    on: z
      .array(z.enum(retryCauses))
      .min(1)
      .nullish()
      .describe(
        'Which results of an attempt lead to another attempt: `failure` (it ran and failed), `timeout`, `error` (it could not be ' +
          'run). Default [failure, timeout].',
      ),
  })
  .meta({ title: 'Retry', description: 'Try again when an attempt does not succeed. Left out: one attempt.' });

const runtimeList = documentedKinds.map(({ kind }) => `\`${kind}\``);
/** One field for each kind of work; a task has at most one of them. */
const runtimeFields = Object.fromEntries(
  documentedKinds.map(({ kind, schema, summary }) => [
    kind,
    schema.nullish().describe(`${summary} At most one of ${runtimeList.join(', ')}.`),
  ]),
) as Record<DocumentedWorkKind, z.ZodOptional<z.ZodNullable<z.ZodObject>>>;

const taskSchema = z
  .strictObject({
    name: name.describe('Unique among the tasks of the job; others refer to it as `task/<name>`.'),
    ...runtimeFields,
    depends: z
      .array(reference)
      .nullish()
      .describe(
        'Triggers and tasks that give this task a token when they fire or succeed: `trigger/x`, `task/x`, ' +
          '`job/task/x`, `project/job/task/x`; `@1d` moves the token to a later instant.',
      ),
    depends_failure: z
      .array(reference)
      .nullish()
      .describe('Tasks that give a token when they end in failure, timeout or error, with no attempt left.'),
    depends_done: z
      .array(reference)
      .nullish()
      .describe('Tasks that give a token when they end with any result, with no attempt left.'),
    threshold: z
      .int()
      .min(1)
      .max(largestInteger)
      .nullish()
      .describe('Tokens needed for a run. Default: one for each of `depends` and `depends_done`, at least 1.'),
    retry: retrySchema.nullish(),
    timeout: span({}, ['10m', '4h']).nullish().describe('An attempt that takes longer is stopped. Default 4h.'),
    queue: text(queueFault, { pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$' })
      .nullish()
      .describe('Only workers that serve this queue take the task. Default `default`.'),
    max_running: z
      .int()
      .min(1)
      .max(largestInteger)
      .nullish()
      .describe('At most this many runs of the task at a time, across all instants; others wait. Left out: no limit.'),
    pool: name
      .nullish()
      .describe(
        'Runs take one of the pool’s places while they are queued or running; tasks of all jobs that name the pool share ' +
          'them. A pool that does not exist yet is created with one place; `millrace pool set` changes that.',
      ),
  })
  .meta({
    title: 'Task',
    description: `A unit of work. Without ${runtimeList.slice(0, -1).join(', ')} or ${runtimeList.at(-1)} it succeeds at once, and only joins other tasks.`,
    ...choice(Object.fromEntries(documentedKinds.map(({ kind }) => [kind, 'object'])), false),
  });

const ageFault = faultOf((value) => readSpan(value, { leastMs: 1000 }));

const retentionSchema = z
  .strictObject({
    age: text((value) => (value === forever ? undefined : ageFault(value)), {
      minLength: 1,
      examples: ['30d', forever],
    })
      .nullish()
      .describe('How long runs are kept after their end, with their logs and tokens: `90d`, or `forever`.'),
    runs: z
      .union(
        [
          z.int().min(1).max(largestInteger),
          text((value) => (value === forever ? undefined : 'must be a whole number, or forever'), { const: forever }),
        ],
        { error: 'must be a whole number, or forever' },
      )
      .nullish()
      .describe('How many finished runs are kept, the newest, or `forever` for all of them.'),
  })
  .meta({
    title: 'Retention',
    description:
      'How much of the job’s history is kept. A field that is left out follows the setting of the installation.',
  });

export const jobSchema = z
  .strictObject({
    uuid: text((value) => (isId(value) ? undefined : 'must be a UUID, such as 8b6f2d0e-8a64-4b3c-9d1f-0d7f6f1f2a10'), {
      format: 'uuid',
    })
      .nullish()
      .describe(
        'The permanent identity of the job: a document with the same uuid replaces it, even under another name. Left out: project and name identify the job.',
      ),
    project: name.describe('The project that the job belongs to.'),
    name: name.describe('Unique within the project.'),
    description: z.string().nullish().describe('A text for readers. It has no effect.'),
    paused: z
      .boolean()
      .nullish()
      .describe(
        'A paused job’s triggers do not fire and its tasks do not start. Left out: an existing job keeps its state, and a new job is not paused.',
      ),
    params: z
      .record(text(paramFault, { pattern: '^[A-Za-z_][A-Za-z0-9_-]*$' }), z.unknown())
      .nullish()
      .describe('Values for `{{params.<name>}}` unless a run is started with other values.'),
    max_active_instants: z
      .int()
      .min(1)
      .max(largestInteger)
      .nullish()
      .describe(
        'At most this many instants of the job at a time: one is active from its first run until no run or retry of it ' +
          'is left. Left out: no limit.',
      ),
    overlap: z
      .enum(overlaps)
      .nullish()
      .describe(
        'What happens to an instant that comes while `max_active_instants` are active: `queue` (default: it waits), ' +
          '`skip` (it is cancelled), `cancel_older` (those that are active are cancelled, and it runs once they have ' +
          'ended). Catch-up and backfills always queue, and are not cancelled.',
      ),
    retention: retentionSchema.nullish(),
    triggers: z.array(triggerSchema).nullish().describe('When the job’s tasks start by themselves.'),
    tasks: z.array(taskSchema).nullish().describe('What the job does.'),
  })
  .meta({
    title: 'Millrace job',
    description: 'A job: triggers that fire at instants, and tasks that depend on them.',
  });

export type JobDocument = z.infer<typeof jobSchema>;
export type TriggerDocument = z.infer<typeof triggerSchema>;
export type TaskDocument = z.infer<typeof taskSchema>;

/** The label of each object in messages, and its fields, by path without indexes. */
export const objects: ReadonlyMap<string, { readonly label: string; readonly fields: readonly string[] }> = new Map(
  [
    ['', 'a job', jobSchema] as const,
    ['retention', 'retention', retentionSchema] as const,
    ['triggers', 'a trigger', triggerSchema] as const,
    ['tasks', 'a task', taskSchema] as const,
    ...documentedKinds.map(({ kind, schema }) => [`tasks.${kind}`, kind, schema] as const),
    ['tasks.retry', 'retry', retrySchema] as const,
  ].map(([path, label, schema]) => [path, { label, fields: Object.keys(schema.shape) }]),
);

/** Fields of other schedulers, or at the wrong place → the field to use here. */
export const movedFields: ReadonlyMap<string, string> = new Map([
  ...runtimeMembers(),
  ['max_attempts', 'retry.max_attempts'],
  ['tz', 'timezone'],
  ['schedule', 'cron'],
  ['depends_on', 'depends'],
]);

/** Members of runtime fields, and which fields have them: `env` is in `docker.env or process.env`. */
function runtimeMembers(): [string, string][] {
  const names = new Set(documentedKinds.flatMap(({ schema }) => Object.keys(schema.shape)));
  return [...names].map((name) => {
    const owners = documentedKinds.filter(({ schema }) => name in schema.shape);
    return [name, owners.map(({ kind }) => `${kind}.${name}`).join(' or ')];
  });
}
