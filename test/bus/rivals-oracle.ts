/**
 * Judges several couriers on one tenant, from outside the product:
 *
 * 1. A write under a lease has no effect once a newer lease of the same errand was granted.
 * 2. A reader with queued events has an errand at every moment, so no errand ever has to be mended (I8).
 * 3. What is queued for a reader is at every moment exactly what lies between its position and fan-out (I7). A count is never
 *    corrected, and no write fails.
 * 4. Every event is accepted, and each key of a strand in order (I7).
 * 5. An event always travels in the same batch, and one batch id always has the same bytes: the part of the id before the numbers of
 *    its events decides whether an event between them is in the batch.
 */
import { deliverKey } from '../../src/bus/errand-keys.ts';
import type { HeldReader } from '../../src/bus/store.ts';
import type { HeldErrand } from '../../src/errands/contract.ts';
import { type Db, sql } from '../../src/kernel/sql.ts';
import type { Received } from '../harness/bus-receiver.ts';

/** Events that a subscriber must receive, with the part of it in which their order counts. */
export type ExpectedEvents = ReadonlyMap<number, string | number>;

type Results = readonly unknown[];

/** For each write about held readers: the readers, and whether it had an effect on each of them. */
const effects: Readonly<
  Record<string, (args: Results, result: unknown) => readonly (readonly [HeldReader, boolean])[]>
> = {
  done: ([acks], results) =>
    zip(acks, results, (result) => (result as { isHeld: boolean } | undefined)?.isHeld === true),
  failed: ([attempts], results) => zip(attempts, results, (result) => result === true),
  cutShort: ([batches], results) => zip(batches, results, (result) => result === true),
  putBack: ([held], result) => [[held as HeldReader, result !== undefined]],
  endIdle: ([held], result) => [[held as HeldReader, result === true]],
  reachBarrier: ([held], result) => [[held as HeldReader, result !== undefined]],
  giveUp: ([batch], result) => [[batch as HeldReader, result === true]],
};

function zip(items: unknown, results: unknown, hasEffect: (result: unknown) => boolean) {
  return (items as readonly HeldReader[]).map((item, i) => [item, hasEffect((results as Results)[i])] as const);
}

export class RivalsOracle {
  readonly #faults = new Set<string>();
  /** By key: the newest lease that a courier was given. */
  readonly #newest = new Map<string, number>();
  /** Writes under a lost lease that had no effect. */
  refused = 0;

  get faults(): readonly string[] {
    return [...this.#faults];
  }

  note(fault: string): void {
    this.#faults.add(fault);
  }

  /** Runs one call of the store or of the errands, and judges its result. */
  async watch(name: string, args: readonly unknown[], call: () => Promise<unknown>): Promise<unknown> {
    const newestBefore = new Map(this.#newest);
    let result: unknown;
    try {
      result = await call();
    } catch (error) {
      this.note(`${name} failed: ${String(error)}`);
      throw error;
    }
    if (name === 'acquire') this.#noteGranted(result as readonly HeldErrand[]);
    if (name === 'fanOut') this.#noteGranted((result as { taken: readonly HeldErrand[] }).taken);
    if (name === 'mend' && result !== 0) this.note(`${String(result)} errands were missing`);
    if (name === 'recount' && result === true) this.note('a count had to be corrected');
    for (const [held, hasEffect] of effects[name]?.(args, result) ?? []) {
      if (held.lease >= (newestBefore.get(deliverKey(held)) ?? 0)) continue;
      if (hasEffect) this.note(`${name} had an effect under a lost lease`);
      else this.refused += 1;
    }
    return result;
  }

  #noteGranted(errands: readonly HeldErrand[]): void {
    for (const { key, lease } of errands) this.#newest.set(key, Math.max(lease, this.#newest.get(key) ?? 0));
  }

  /** Looks for readers without an errand, and for counts that are not what the log and the subscriptions say. */
  async checkReaders(db: Db): Promise<void> {
    const rows = await db.rows<{ queued: number; counted: number; is_served: boolean }>(sql`
      select r.queued, c.n as counted,
             s.state <> 'active' or r.queued = 0 or exists (
               select from errand e where e.queue = 'main' and e.key = deliver_key(r.subscriber_id, r.strand)) as is_served
        from reader r
        join subscriber s on s.id = r.subscriber_id
       cross join bus_state b
       cross join lateral (
         select count(*) as n
           from bus_event e
          cross join lateral (
            select t.topics, t.strands
              from subscription t
             where t.subscriber_id = r.subscriber_id and t.from_seq < e.seq
             order by t.from_seq desc
             limit 1
          ) as t
          where e.seq > r.pos and e.seq <= b.fanned and e.topic_id = any (t.topics)
            and (e.key_hash::bigint & 4294967295) % t.strands = r.strand
       ) as c`);
    for (const { queued, counted, is_served: isServed } of rows) {
      if (!isServed) this.note('a reader has events queued and no errand');
      if (queued !== counted) this.note('the count of a reader is not what lies before it');
    }
  }

  /** What a subscriber received that was moved: everything from its last position on, in batches with stable bytes. */
  checkMoved(name: string, wanted: readonly number[], received: readonly Received[], later: readonly Received[]): void {
    this.#checkBatches(name, received);
    const accepted = new Set(later.filter(isAccepted).flatMap(({ seqs }) => seqs));
    const missing = wanted.filter((seq) => !accepted.has(seq));
    if (missing.length > 0) this.note(`${name}: events ${missing.join(', ')} are missing after a move`);
  }

  #checkBatches(name: string, received: readonly Received[]): void {
    const bodies = new Map<string, string>();
    for (const { id, body } of received) {
      if ((bodies.get(id) ?? body) !== body) this.note(`${name}: batch ${id} has two bodies`);
      bodies.set(id, body);
    }
    const members = new Map<string, boolean>();
    for (const { id, seqs } of received) {
      const [, label = '', first, last] = id.split('_');
      const own = new Set(seqs);
      for (let seq = Number(first); seq <= Number(last); seq++) {
        const key = `${label} ${seq}`;
        if ((members.get(key) ?? own.has(seq)) !== own.has(seq)) {
          this.note(`${name}: batch ${id} and another of ${label} differ in event ${seq}`);
          break;
        }
        members.set(key, own.has(seq));
      }
    }
  }

  /** What one subscriber received, when nothing is left to deliver. */
  checkReceived(name: string, expected: ExpectedEvents, received: readonly Received[]): void {
    const batches = new Map<number, string>();
    this.#checkBatches(name, received);
    for (const { id, seqs } of received) {
      for (const seq of seqs) {
        const batch = batches.get(seq) ?? id;
        if (batch !== id) this.note(`${name}: an event is in the batches ${batch} and ${id}`);
        batches.set(seq, batch);
      }
    }
    const accepted = received.filter(isAccepted);
    const first = [...new Set(accepted.flatMap(({ seqs }) => seqs))];
    const missing = [...expected.keys()].filter((seq) => !first.includes(seq));
    if (missing.length > 0) this.note(`${name}: events ${missing.join(', ')} are missing`);
    const foreign = first.filter((seq) => !expected.has(seq));
    if (foreign.length > 0) this.note(`${name}: events ${foreign.join(', ')} do not belong to it`);
    const last = new Map<string | number, number>();
    for (const seq of first) {
      const part = expected.get(seq) ?? '';
      if (seq < (last.get(part) ?? 0)) this.note(`${name}: event ${seq} came after ${last.get(part)}`);
      last.set(part, seq);
    }
  }
}

function isAccepted({ status }: Received): boolean {
  return status !== undefined && status < 300;
}
