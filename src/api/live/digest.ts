/**
 * A digest: what has changed since the one before, without what happened in between. It names jobs, runs and documents
 * to read again, and stays small however much happens: where a list would be long, it says `many` instead.
 */
import { isMachine } from '../../events/audit.ts';
import type { LoggedEvent } from '../../events/queries.ts';

/** As it is sent. What is left out has not changed. */
export interface DigestMessage {
  /** Too much was missed: read everything again. */
  readonly all?: true;
  /** More jobs' runs have changed than are named: take all to have. */
  readonly many?: true;
  /** Jobs whose runs or tokens have changed. */
  readonly jobs?: readonly string[];
  readonly runs?: readonly string[];
  /** Jobs whose documents have changed, or that came or went. */
  readonly written?: readonly string[];
  /** Projects, their configuration or the stash. */
  readonly projects?: true;
  readonly pools?: true;
  /** Somebody did something: the audit is longer. */
  readonly people?: true;
  /** Workers or schedulers came, went, or have other work. */
  readonly fleet?: true;
  /** The tenant's scheduler came or went. */
  readonly scheduler?: true;
  /** Something is late, or no longer. */
  readonly late?: true;
  /** Another minute has begun: what counts by the clock is another count. */
  readonly minute?: true;
}

const mostNamed = 200;

/** The part of an event that a digest looks at. */
export type DigestedEvent = Pick<LoggedEvent, 'topic' | 'type' | 'subject' | 'actor' | 'body'>;

type Mark = 'all' | 'many' | 'projects' | 'pools' | 'people' | 'fleet' | 'scheduler' | 'late' | 'minute';

export class Digest {
  readonly #marks = new Set<Mark>();
  readonly #jobs = new Set<string>();
  readonly #runs = new Set<string>();
  readonly #written = new Set<string>();

  get isEmpty(): boolean {
    return this.#marks.size + this.#jobs.size + this.#runs.size + this.#written.size === 0;
  }

  mark(mark: Mark): void {
    this.#marks.add(mark);
  }

  addEvent(event: DigestedEvent): void {
    if (event.actor !== null && !isMachine(event.actor)) this.#marks.add('people');
    if (event.topic === 'millrace_runs') this.addRun(event.subject, jobOf(event.body));
    else if (event.topic === 'millrace_projects') this.#marks.add('projects');
    else if (event.type.startsWith('pool.')) this.#marks.add('pools');
    else if (event.subject !== null) this.#addJobEvent(event, event.subject);
  }

  /** A backfill's events are told by its own id, and name its job in the body: nothing of the document has changed. Nor has it
   * when the job is run by hand. */
  #addJobEvent({ topic, type, body }: DigestedEvent, subject: string): void {
    const job = jobOf(body);
    const isWritten = topic === 'millrace_jobs' && job === undefined && type !== 'job.run';
    this.#addJob(job ?? subject, isWritten);
  }

  /** A run of a node has no job (null). Undefined: the job is not known, so that any may have changed. */
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
    for (const job of other.#jobs) this.#addJob(job, false);
    for (const job of other.#written) this.#addJob(job, true);
  }

  message(): DigestMessage {
    if (this.#marks.has('all')) return { all: true };
    const many = this.#marks.has('many');
    // who knows only that a job's runs have changed takes each of them to have
    const runs = many || this.#runs.size > mostNamed ? [] : [...this.#runs];
    const lists = { jobs: many ? [] : [...this.#jobs], runs, written: [...this.#written] };
    return {
      ...Object.fromEntries([...this.#marks].map((mark) => [mark, true])),
      ...Object.fromEntries(Object.entries(lists).filter(([, ids]) => ids.length > 0)),
    };
  }
}

/** False: there are more than are named, and of those no more are kept. */
function add(names: Set<string>, name: string): boolean {
  if (names.size <= mostNamed) names.add(name);
  return names.size <= mostNamed;
}

const idLength = 36;
const opening = '{"job":"';

const withoutJob = '{"job":null,';

/**
 * Bodies of runs begin with their job; they come by the thousand, and parsing each would cost more than reading it. Null: the
 * body says that there is no job.
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
