/** Builds the definition of a job from a document that has passed every check: defaults, units, references in full. */
import type {
  EdgeDefinition,
  JobDefinition,
  JsonObject,
  RetentionDefinition,
  RetryDefinition,
  TaskDefinition,
  TriggerDefinition,
} from './definition.ts';
import { forever } from './definition.ts';
import type { JobDocument, TaskDocument, TriggerDocument } from './document/document.ts';
import { edgeFields, type Home, resolve } from './document/references.ts';
import { parseReference } from './reference.ts';
import { unwrapRead, readInstant, readSpan } from '../documents/values.ts';
import { defaultQueue } from '../contract/lane.ts';
import { buildBlock } from '../runtimes/kinds.ts';

/** Both are the defaults of Waterwheel's configuration. */
const defaultTimeoutMs = 4 * 3_600_000;
const defaultRetryDelayMs = 5 * 60_000;

export function buildJob(checked: JobDocument, document: JsonObject): JobDefinition {
  const tasks = (checked.tasks ?? []).map((task) => buildTask(task, checked));
  return {
    uuid: checked.uuid?.toLowerCase() ?? null,
    project: checked.project,
    name: checked.name,
    description: checked.description ?? '',
    paused: checked.paused ?? null,
    // `plain-json.ts` has proved that everything in a document is JSON
    params: (checked.params ?? {}) as JsonObject,
    maxActiveInstants: checked.max_active_instants ?? null,
    overlap: checked.overlap ?? 'queue',
    retention: buildRetention(checked.retention),
    triggers: (checked.triggers ?? []).map(buildTrigger),
    tasks,
    foreignReferences: foreignReferences(checked),
    document,
  };
}

function buildTrigger(trigger: TriggerDocument): TriggerDefinition {
  return {
    name: trigger.name,
    startMs: unwrapRead(readInstant(trigger.start)),
    endMs: ifGiven(trigger.end, (text) => unwrapRead(readInstant(text))),
    periodMs: ifGiven(trigger.period, spanMs),
    cron: trigger.cron ?? null,
    timezone: trigger.timezone ?? null,
    offsetMs: ifGiven(trigger.offset, (text) => unwrapRead(readSpan(text, { signed: true }))) ?? 0,
    catchup: trigger.catchup ?? 'earliest',
    catchupWindowMs: ifGiven(trigger.catchup_window, spanMs),
  };
}

function buildTask(task: TaskDocument, home: Home): TaskDefinition {
  const tokens = (task.depends?.length ?? 0) + (task.depends_done?.length ?? 0);
  return {
    name: task.name,
    runtime: buildBlock(task),
    queue: task.queue ?? defaultQueue,
    edges: buildEdges(task, home),
    threshold: task.threshold ?? Math.max(1, tokens),
    retry: buildRetry(task.retry),
    timeoutMs: ifGiven(task.timeout, spanMs) ?? defaultTimeoutMs,
    maxRunning: task.max_running ?? null,
    pool: task.pool ?? null,
  };
}

function buildEdges(task: TaskDocument, home: Home): EdgeDefinition[] {
  return edgeFields.flatMap(([field, kind]) =>
    (task[field] ?? []).map((text) => {
      const reference = unwrapRead(parseReference(text));
      const parent = resolve(reference, home);
      return { kind: parent.kind === 'trigger' ? 'trigger' : kind, parent, offsetMs: reference.offsetMs };
    }),
  );
}

function buildRetry(retry: TaskDocument['retry']): RetryDefinition {
  return {
    maxAttempts: retry?.max_attempts ?? 1,
    delayMs: ifGiven(retry?.delay, spanMs) ?? defaultRetryDelayMs,
    factor: retry?.factor ?? 1,
    capMs: ifGiven(retry?.cap, spanMs),
    jitter: retry?.jitter ?? 0,
    on: [...new Set(retry?.on ?? (['failure', 'timeout'] as const))],
  };
}

function buildRetention(retention: JobDocument['retention']): RetentionDefinition {
  const { age, runs } = retention ?? {};
  return {
    ...(age ? { age_ms: age === forever ? null : spanMs(age) } : {}),
    ...(runs ? { runs: typeof runs === 'number' ? runs : null } : {}),
  };
}

function foreignReferences(document: JobDocument): JobDefinition['foreignReferences'] {
  return (document.tasks ?? []).flatMap((task, i) =>
    edgeFields.flatMap(([field]) =>
      (task[field] ?? []).flatMap((text, j) => {
        const reference = resolve(unwrapRead(parseReference(text)), document);
        return reference.local ? [] : [{ path: `tasks[${i}].${field}[${j}]`, reference }];
      }),
    ),
  );
}

function ifGiven<T>(text: string | null | undefined, read: (text: string) => T): T | null {
  return text === null || text === undefined ? null : read(text);
}

function spanMs(text: string): number {
  return unwrapRead(readSpan(text));
}
