/**
 * Reads the executions that letters wait for, many with one statement, and makes the new ones of launches.
 *
 * An execution that does not exist ends its letters as `gone`; a launch that names no flow ends as `refused`. After a failure the
 * mailboxes wait for a pause, and are read again.
 */
import type { EngineContext } from '../contract/context.ts';
import type { Execution, FlowEngine } from '../contract/flows.ts';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { checkpoint } from './checkpoints.ts';
import type { Mailbox } from './mailbox.ts';
import type { Mailboxes } from './mailboxes.ts';

/** Executions that one statement reads: few at first, then as many as fit in `maxBytes` if all are as large as the last ones were. */
const first = 16;
const maxFetched = 250;
const maxBytes = 64 * 1024 * 1024;
const maxStatements = 2;

export interface FetchingOptions {
  readonly engine: Pick<FlowEngine, 'fetch' | 'blank'>;
  readonly ctx: EngineContext;
  readonly mailboxes: Mailboxes;
  readonly onLoaded: () => void;
  readonly onError: (error: unknown) => void;
}

/** How many executions the next statement reads, after one that read `found`. */
export function nextCount(last: number, found: readonly Pick<Execution, 'bytes'>[]): number {
  const bytes = found.reduce((sum, execution) => sum + execution.bytes, 0);
  const fitting = bytes === 0 ? maxFetched : Math.floor((maxBytes / bytes) * found.length);
  return Math.max(1, Math.min(fitting, last * 2, maxFetched));
}

export class Fetching {
  readonly #options: FetchingOptions;
  #underWay = 0;
  #most = first;
  #failures = 0;
  #pausing: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: FetchingOptions) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#underWay === 0;
  }

  kick(): void {
    const { mailboxes } = this.#options;
    while (
      !this.#isStopped &&
      this.#pausing === undefined &&
      this.#underWay < maxStatements &&
      mailboxes.count('absent') > 0
    )
      void this.#fetch(mailboxes.take('absent', this.#most));
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#pausing);
  }

  async #fetch(boxes: readonly Mailbox[]): Promise<void> {
    const { onLoaded, onError } = this.#options;
    for (const box of boxes) box.phase = 'fetching';
    this.#underWay += 1;
    try {
      await Promise.all([
        this.#read(boxes.filter(({ isNew }) => !isNew)),
        this.#make(boxes.filter(({ isNew }) => isNew)),
      ]);
      this.#failures = 0;
      checkpoint('message.fetched');
    } catch (error) {
      onError(error);
      this.#putBack(boxes);
    } finally {
      this.#underWay -= 1;
    }
    onLoaded();
    this.kick();
  }

  #putBack(boxes: readonly Mailbox[]): void {
    const { mailboxes } = this.#options;
    this.#pausing ??= setTimeout(
      () => {
        this.#pausing = undefined;
        this.kick();
      },
      delayMs(reconnect, this.#failures++),
    );
    for (const box of boxes) if (box.phase === 'fetching') mailboxes.forget(box);
  }

  async #read(boxes: readonly Mailbox[]): Promise<void> {
    if (boxes.length === 0) return;
    const { engine, ctx, mailboxes } = this.#options;
    const found = await engine.fetch(
      ctx,
      boxes.map(({ id }) => id),
    );
    this.#most = nextCount(this.#most, found);
    const byId = new Map(found.map((execution) => [execution.id, execution]));
    for (const box of boxes) {
      const execution = byId.get(box.id);
      if (execution !== undefined) mailboxes.load(box, execution);
      else if (box.waiting[0]?.message.point === 'launch') {
        box.isNew = true;
        mailboxes.forget(box);
      } else mailboxes.endAll(box, { kind: 'gone' });
    }
  }

  async #make(boxes: readonly Mailbox[]): Promise<void> {
    if (boxes.length === 0) return;
    const { engine, ctx, mailboxes } = this.#options;
    const launches = boxes.flatMap(({ waiting: [first] }) => (first === undefined ? [] : [first.message]));
    const blanks = await engine.blank(ctx, launches);
    const made = new Map(launches.map(({ execution }, i) => [execution, blanks[i]]));
    for (const box of boxes) {
      const blank = made.get(box.id);
      if (blank?.ok === true) mailboxes.load(box, blank.execution);
      else if (blank === undefined) mailboxes.endAll(box, { kind: 'gone' });
      else mailboxes.endAll(box, { kind: 'refused', code: blank.code, detail: blank.detail });
    }
  }
}
