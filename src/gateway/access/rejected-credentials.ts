/**
 * Records rejected credentials as events of the control database, which the installation's audit shows. A program that
 * guesses keys cannot fill the event log:
 *
 * 1. The first rejection of a kind from an address is written at once.
 * 2. Further ones are counted, and written as one event with their number at the end of the period.
 * 3. Addresses beyond the first twenty of a kind in a period are counted together.
 */
import { append, type EventDraft, keyTopic } from '../../events/append.ts';
import type { Log } from '../../kernel/log.ts';
import { warnThrottled } from '../../kernel/log-throttle.ts';
import { loop, pause, type Service, within } from '../../kernel/service.ts';
import type { Db } from '../../kernel/sql.ts';
import type { Time } from '../../kernel/time.ts';

/** The rejected credential: a key or a link at the sign-in page, a key in a header, or the link of a task of a flow. */
export type RefusedKind = 'sign-in key' | 'sign-in link' | 'header' | 'answer link';

interface Count {
  readonly kind: RefusedKind;
  /** Null: several addresses, or unknown. */
  readonly address: string | null;
  readonly since: Date;
  /** Rejections that no event contains yet. */
  unwritten: number;
}

/** With four kinds, at most 168 events of about 300 bytes in ten minutes. */
const limits = { periodMs: 10 * 60_000, maxAddresses: 20, stopMs: 1_000 } as const;

export interface RejectedCredentialsOptions {
  readonly control: Db;
  readonly time: Time;
  readonly log: Log;
}

export class RejectedCredentials {
  readonly #options: RejectedCredentialsOptions;
  #counts = new Map<string, Count>();
  #writing: Promise<void> = Promise.resolve();
  readonly service: Service;

  constructor(options: RejectedCredentialsOptions) {
    this.#options = options;
    const periods = loop(
      'rejected credentials',
      async (signal) => {
        await pause(limits.periodMs, signal);
        // not awaited: a database that does not answer must not hold up the end of this loop
        if (!signal.aborted) void this.endPeriod();
      },
      warnThrottled(options.log, 'counting rejected credentials failed, retrying'),
    );
    this.service = {
      name: periods.name,
      start: periods.start,
      stop: async () => {
        await periods.stop();
        // a database that does not respond must not block the shutdown
        await within(limits.stopMs, this.endPeriod());
      },
    };
  }

  /** Never throws and never waits, so a rejection does not delay the response. */
  note(kind: RefusedKind, address: string | null): void {
    const known = this.#find(kind, address);
    if (known !== undefined) {
      known.unwritten += 1;
      return;
    }
    const noted = this.#countOf(kind) < limits.maxAddresses ? address : null;
    const since = new Date(this.#options.time.now());
    this.#counts.set(makeName(kind, noted), { kind, address: noted, since, unwritten: 0 });
    this.#write([makeDraft({ kind, address: noted, since, unwritten: 1 })]);
  }

  /** Writes the rejections that were only counted, and starts a new period. Resolves when all is written. */
  async endPeriod(): Promise<void> {
    const counts = [...this.#counts.values()].filter(({ unwritten }) => unwritten > 0);
    this.#counts = new Map();
    if (counts.length > 0) this.#write(counts.map(makeDraft));
    await this.#writing;
  }

  #find(kind: RefusedKind, address: string | null): Count | undefined {
    const own = this.#counts.get(makeName(kind, address));
    if (own !== undefined || this.#countOf(kind) < limits.maxAddresses) return own;
    return this.#counts.get(makeName(kind, null));
  }

  #countOf(kind: RefusedKind): number {
    return [...this.#counts.values()].filter((count) => count.kind === kind).length;
  }

  #write(drafts: readonly EventDraft[]): void {
    const { control, time, log } = this.#options;
    this.#writing = this.#writing
      .then(() => append(control, keyTopic, drafts, { actor: 'nobody', at: new Date(time.now()) }))
      .catch((error: unknown) => log.warn({ err: error }, 'rejected credentials not recorded in the audit'));
  }
}

function makeName(kind: RefusedKind, address: string | null): string {
  return `${kind} ${address ?? ''}`;
}

const reasons: Readonly<Record<RefusedKind, string>> = {
  'sign-in key': 'the key is not known, or was revoked',
  'sign-in link': 'the link is not known, was used, or is too old',
  header: 'the key is not known, or was revoked',
  'answer link': 'the link was not made by this installation, or is too old',
};

const types: Readonly<Record<RefusedKind, string>> = {
  'sign-in key': 'session.refused',
  'sign-in link': 'session.refused',
  header: 'key.refused',
  'answer link': 'link.refused',
};

function makeDraft({ kind, address, since, unwritten }: Count): EventDraft {
  const body = { with: kind, reason: reasons[kind], address, count: unwritten, since: since.toISOString() };
  return { type: types[kind], subject: null, body };
}
