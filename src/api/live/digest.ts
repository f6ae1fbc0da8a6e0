/**
 * A digest names the jobs, runs and documents that have changed since the previous digest and must be read again. It stays
 * small however much happens: instead of a long list, it says `many`.
 */
import { isMachine } from '../../events/audit.ts';
import type { LoggedEvent } from '../../events/queries.ts';

/** The message to the browser. A field that is left out has not changed. */
export interface DigestMessage {
  /** The reader missed too much: read everything again. */
  readonly all?: true;
  /** Runs of more jobs have changed than can be named: assume that all have. */
  readonly many?: true;
  /** Jobs whose runs or tokens have changed. */
  readonly jobs?: readonly string[];
  readonly runs?: readonly string[];
  /** Jobs that were created, changed or deleted. */
  readonly written?: readonly string[];
  /** Projects, their configuration or the stash have changed. */
  readonly projects?: true;
  readonly pools?: true;
  /** Executions of flows that have changed. */
  readonly executions?: readonly string[];
  /** More of them have changed than can be named: assume that all have. */
  readonly anyExecution?: true;
  /** Flows were applied or deleted. */
  readonly flows?: true;
  /** Work items came, went, or were claimed. */
  readonly workitems?: true;
  /** A person did something, so the audit has new entries. */
  readonly people?: true;
  /** Workers or schedulers came, went, or got other work. */
  readonly fleet?: true;
  /** The tenant's scheduler came or went. */
  readonly scheduler?: true;
  /** Something has become late, or is no longer late. */
  readonly late?: true;
  /** A new minute has begun, so counts per minute have changed. */
  readonly minute?: true;
}

const maxNamed = 200;

/** The fields of an event that a digest uses. */
export type DigestedEvent = Pick<LoggedEvent, 'topic' | 'type' | 'subject' | 'actor' | 'body'>;

type Mark =
  | ('anyExecution' | 'flows' | 'workitems')
  | 'all'
  | 'many'
  | 'projects'
  | 'pools'
  | 'people'
  | 'fleet'
  | 'scheduler'
  | 'late'
  | 'minute';

export class Digest {
  readonly #marks = new Set<Mark>();
  readonly #jobs = new Set<string>();
  readonly #runs = new Set<string>();
  readonly #written = new Set<string>();
  readonly #executions = new Set<string>();

  get isEmpty(): boolean {
    const names = this.#jobs.size + this.#runs.size + this.#written.size + this.#executions.size;
    return this.#marks.size + names === 0;
  }

  mark(mark: Mark): void {
    this.#marks.add(mark);
  }

  addEvent(event: DigestedEvent): void {
    if (event.actor !== null && !isMachine(event.actor)) this.#marks.add('people');
    if (event.topic === 'millrace_runs') this.addRun(event.subject, jobOf(event.body));
    else if (event.topic === 'millrace_executions') this.#addExecutionEvent(event);
    else if (event.topic === 'millrace_flows') this.#marks.add('flows');
    else if (event.topic === 'millrace_projects') this.#marks.add('projects');
    else if (event.type.startsWith('pool.')) this.#marks.add('pools');
    else if (event.subject !== null) this.#addJobEvent(event, event.subject);
  }

  #addExecutionEvent({ type, subject }: DigestedEvent): void {
    if (type.startsWith('workitem.')) this.#marks.add('workitems');
    if (subject === null || !add(this.#executions, subject)) this.#marks.add('anyExecution');
  }

  /** Events of a backfill name its job in the body; the document has not changed. Nor has it if a user runs the job. */
  #addJobEvent({ topic, type, body }: DigestedEvent, subject: string): void {
    const job = jobOf(body);
    const isWritten = topic === 'millrace_jobs' && job === undefined && type !== 'job.run';
    this.#addJob(job ?? subject, isWritten);
  }

  /** A run of a node has no job (null). Undefined: the job is not known, so any job may have changed. */
  addRun(run: string | null, job: string | null | undefined): void {
    if (job === undefined) this.#marks.add('many');
    else if (job !== null) this.#addJob(job, false);
    const isNamed = run === null || add(this.#runs, run);
    if (!isNamed && job === null) this.#marks.add('many');
  }

  #addJob(job: string, isWritten: boolean): void {
    if (!add(this.#jobs, job)) this.#marks.add('many');
    if (isWritten && !add(this.#written, job)) this.#marks.add('all');
  }

  addAll(other: Digest): void {
    for (const mark of other.#marks) this.#marks.add(mark);
    for (const run of other.#runs) add(this.#runs, run);
    for (const id of other.#executions) if (!add(this.#executions, id)) this.#marks.add('anyExecution');
    for (const job of other.#jobs) this.#addJob(job, false);
    for (const job of other.#written) this.#addJob(job, true);
  }

  message(): DigestMessage {
    if (this.#marks.has('all')) return { all: true };
    const many = this.#marks.has('many');
    // without the list, a reader assumes that every run of these jobs has changed
    const runs = many || this.#runs.size > maxNamed ? [] : [...this.#runs];
    const executions = this.#marks.has('anyExecution') ? [] : [...this.#executions];
    const lists = { jobs: many ? [] : [...this.#jobs], runs, written: [...this.#written], executions };
    return {
      ...Object.fromEntries([...this.#marks].map((mark) => [mark, true])),
      ...Object.fromEntries(Object.entries(lists).filter(([, ids]) => ids.length > 0)),
    };
  }
}

/** Returns false if there are more names than can be sent. Further names are not stored. */
function add(names: Set<string>, name: string): boolean {
  if (names.size <= maxNamed) names.add(name);
  return names.size <= maxNamed;
}

const idLength = 36;
const opening = '{"job":"';

const withoutJob = '{"job":null,';

/**
 * Bodies of run events begin with the job. There are thousands of them, and parsing each would cost more than reading it.
 * Null: the body says that the run has no job.
 */
function jobOf(body: string): string | null | undefined {
  if (body.startsWith(opening)) return body.slice(opening.length, opening.length + idLength);
  if (body.startsWith(withoutJob)) return null;
  try {
    const { job } = JSON.parse(body) as { job?: unknown };
    return typeof job === 'string' || job === null ? job : undefined;
  } catch {
    return undefined;
  }
}
