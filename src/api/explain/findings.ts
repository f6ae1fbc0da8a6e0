/**
 * Builds explanations from findings (a reason, and what the user can do about it), and formats names and times. A message is a
 * clause without a full stop, so that a summary can join several messages.
 */
import type { CallAnswer } from '../../http/client.ts';
import { formatReference } from '../../jobs/reference.ts';
import { shellWord } from '../../kernel/text/shell-word.ts';
import type { explainEndpoints, ReasonCode } from './endpoints.ts';

export type Explanation = CallAnswer<(typeof explainEndpoints)['GET /api/explain/run/{id}']>;
export type Link = Explanation['chain'][number];
export type Subject = Explanation['subject'];

/** A reason, with what will happen next or what the user can do. */
export interface Finding {
  readonly code: ReasonCode;
  readonly message: string;
  readonly data: Record<string, unknown>;
  readonly next?: string;
  /** Replaces the message at the beginning of a summary, because the summary already names the state. */
  readonly brief?: string;
}

export function finding(code: ReasonCode, message: string, data: Record<string, unknown> = {}, next?: string): Finding {
  return next === undefined ? { code, message, data } : { code, message, data, next };
}

/** A task or trigger with the job it belongs to. */
export interface Part {
  readonly id: string;
  readonly name: string;
  readonly job_id: string;
  readonly job_name: string;
  readonly project_name: string;
}

/** `task/load` within the job of `home`; with the names of job and project if these differ. */
export function nameOf(kind: 'task' | 'trigger', part: Part, home?: Part): string {
  const sameProject = part.project_name === home?.project_name;
  return formatReference({
    project: sameProject ? null : part.project_name,
    job: sameProject && part.job_id === home?.job_id ? null : part.job_name,
    kind,
    name: part.name,
    offsetMs: 0,
  });
}

/** The job as an argument of `millrace`, quoted for a shell. */
export function jobNameOf(part: Pick<Part, 'project_name' | 'job_name'>): string {
  return shellWord(`${part.project_name}/${part.job_name}`);
}

/** The name with the end of the id, as in `millrace status`, because all workers of a host have the same name. */
export function workerName({ id, name }: { readonly id: string; readonly name: string }): string {
  return `${name} (${id.slice(-6)})`;
}

export function formatTime(at: Date): string {
  return at.toISOString().replace('.000Z', 'Z');
}

export function tokenIdOf(task: string, instant: Date): string {
  return `${task}@${instant.toISOString()}`;
}

export function formatCount(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** The predicate of a sentence about a run, token or trigger in this state. */
const stateWords: Readonly<Record<Explanation['state'], string>> = {
  waiting: 'has not run',
  active: 'has not started',
  running: 'is running',
  success: 'ran and succeeded',
  failure: 'ran and failed',
  timeout: 'timed out',
  error: 'could not be run',
  cancelled: 'was cancelled',
  retry: 'is to be tried again',
  scheduled: 'waits for its time',
  due: 'is due',
  fired: 'fired',
  off_schedule: 'does not fire then',
  skipped: 'did not fire',
  catching_up: 'is catching up',
  paused: 'is paused',
  ended: 'has ended',
  removed: 'is removed',
  incident: 'has an incident',
  done: 'is done',
  failed: 'has failed',
};

/** Of executions, where other words fit. */
const executionWords: Readonly<Partial<Record<Explanation['state'], string>>> = {
  waiting: 'waits',
  running: 'is at work',
};

const maxSummaryReasons = 2;

export interface Findings {
  readonly state: Explanation['state'];
  /** The most important findings come first. */
  readonly findings: readonly Finding[];
  readonly chain: readonly Link[];
}

export function explanationOf(subject: Subject, { state, findings, chain }: Findings): Explanation {
  const who = subject.name ?? `run ${subject.id}`;
  const when = subject.instant === null ? '' : ` at ${formatTime(new Date(subject.instant))}`;
  const why = findings
    .slice(0, maxSummaryReasons)
    .map(({ message, brief }, i) => (i === 0 ? (brief ?? message) : message))
    .filter((words) => words !== '');
  return {
    subject,
    state,
    summary: `${who}${when} ${(subject.kind === 'execution' ? executionWords[state] : undefined) ?? stateWords[state]}${why.length > 0 ? `: ${why.join('; ')}` : ''}.`,
    reasons: findings.map(({ code, message, data }) => ({ code, message, data })),
    chain: [...chain],
    next: findings.find(({ next }) => next !== undefined)?.next ?? null,
  };
}
