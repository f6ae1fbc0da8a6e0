/** Replays at work: a real database, real receivers, one courier. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { many, TestBus } from '../../../test/harness/bus.ts';
import { type BusReceiver, makeBusReceiver } from '../../../test/harness/bus-receiver.ts';
import { until } from '../../../test/harness/until.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { resumeSubscriber } from '../subscribers/control.ts';
import { findById } from '../subscribers/queries.ts';
import { cancelReplay, type ReplayRange, startReplay } from '../subscribers/replays.ts';

let bus: TestBus;
let receiver: BusReceiver;

beforeAll(async () => {
  bus = await TestBus.make();
  receiver = await makeBusReceiver();
  await bus.startCourier();
});

afterAll(async () => {
  await bus?.close();
  await receiver?.close();
});

const context = () => ({ ...bus.ctx, db: bus.db });
const author = () => ({ actor: 'tests', at: new Date() });

async function subscriberOf(id: string) {
  const subscriber = await findById(bus.db, id);
  if (subscriber === undefined) throw new Error('the subscriber is missing');
  return subscriber;
}

async function replay(id: string, range: Partial<ReplayRange> & { from: number; to: number }): Promise<string> {
  return startReplay(context(), author(), await subscriberOf(id), { onlyUndelivered: false, ...range });
}

type ReplayState = { state: string; pos: number; sent: number; attempts: number; batch_end: number | null };

function read(id: string): Promise<ReplayState> {
  return bus.db.one<ReplayState>(sql`select state, pos, sent, attempts, batch_end from replay where id = ${id}`);
}

function ended(id: string): Promise<ReplayState> {
  return until('the replay has ended', async () => {
    const row = await read(id);
    return row.state === 'running' ? undefined : row;
  });
}

const errandsOf = (id: string) =>
  bus.db.rows<{ state: string; run_at: Date | null }>(
    sql`select state, run_at from errand where key like ${`%${id}%`}`,
  );

const replayed = (id: string) => receiver.received.filter(({ headers }) => headers['millrace-replay'] === id);

describe('a replay', () => {
  it('sends the range again in the same batches, under the same ids, and leaves the reader alone', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/again`, topics: [1], max: 10 });
    const seqs = await bus.publish(many(25));
    await receiver.acceptedEvents(25, '/again');
    await until('nothing is queued', async () => (await bus.readers(id))[0]?.queued === 0);
    const before = await bus.readers(id);
    const first = receiver.received.filter(({ path }) => path === '/again');
    const replayId = await replay(id, { from: (seqs[0] ?? 0) - 1, to: seqs.at(-1) ?? 0 });
    expect(await ended(replayId)).toMatchObject({ state: 'done', pos: seqs.at(-1), sent: 25, batch_end: null });
    const second = replayed(replayId);
    expect(second.map(({ id: batch, body }) => ({ batch, body }))).toEqual(
      first.map(({ id: batch, body }) => ({ batch, body })),
    );
    expect(await bus.readers(id)).toEqual(before);
    expect(await errandsOf(replayId)).toEqual([]);
    const events = await bus.db.rows<{ type: string }>(
      sql`select type from event where subject = ${id} and type like 'replay.%' order by seq`,
    );
    expect(events.map(({ type }) => type)).toEqual(['replay.started', 'replay.done']);
  });

  it('applies the current terms, and gives batches of older events ids of their own', async () => {
    const callback = `${receiver.url}/terms`;
    const id = await bus.subscribe({ callback, topics: [2], max: 4 });
    const seqs = await bus.publish(many(8, (n) => ({ topic: 2, data: { n } })));
    await receiver.acceptedEvents(8, '/terms');
    const from = await bus.change(id, { callback, topics: [2], max: 4, filter: { 'data.n': { $gte: 3 } } });
    const replayId = await replay(id, { from: (seqs[0] ?? 0) - 1, to: seqs.at(-1) ?? 0 });
    expect(await ended(replayId)).toMatchObject({ state: 'done', sent: 5 });
    const batches = replayed(replayId);
    expect(batches.map((batch) => batch.seqs)).toEqual([seqs.slice(3, 7), seqs.slice(7)]);
    expect(batches[0]?.id).toBe(`${id.slice(-8)}_r${from}_${seqs[3]}_${seqs[6]}`);
  });

  it('backs off while the receiver fails, keeps its position, and disturbs neither reader nor health', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/sick`, topics: [3], max: 2 });
    const seqs = await bus.publish(many(4, () => ({ topic: 3 })));
    await receiver.acceptedEvents(4, '/sick');
    let failures = 2;
    receiver.reply = ({ path, headers }) =>
      path === '/sick' && headers['millrace-replay'] !== undefined && headers['webhook-id']?.includes(`_${seqs[2]}_`)
        ? failures-- > 0
          ? 500
          : 204
        : 204;
    const replayId = await replay(id, { from: (seqs[0] ?? 0) - 1, to: seqs.at(-1) ?? 0 });
    const waiting = await until('it waits', async () => {
      const [errand] = await errandsOf(replayId);
      return errand?.state === 's' ? read(replayId) : undefined;
    });
    expect(waiting).toMatchObject({ state: 'running', pos: seqs[1], sent: 2 });
    const more = await bus.publish([{ topic: 3 }]);
    await until('the new event arrives meanwhile', () =>
      receiver.received.some((batch) => batch.seqs.includes(more[0] ?? 0)),
    );
    expect(await ended(replayId)).toMatchObject({ state: 'done', sent: 4, attempts: 0 });
    expect(replayed(replayId).map(({ headers }) => headers['millrace-attempt'])).toEqual(['1', '1', '2', '3']);
    expect(
      new Set(
        replayed(replayId)
          .slice(1)
          .map((batch) => batch.id),
      ).size,
    ).toBe(1);
    const { health, first_failed_at } = await bus.db.one<{ health: number; first_failed_at: Date | null }>(
      sql`select health, first_failed_at from subscriber where id = ${id}`,
    );
    expect({ health, first_failed_at }).toEqual({ health: 100, first_failed_at: null });
  });

  it('has failed after its last attempt, or if the receiver is gone, and the subscriber stays active', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/never`, topics: [4], max: 2, maxAttempts: 2 });
    const seqs = await bus.publish(many(2, () => ({ topic: 4 })));
    await receiver.acceptedEvents(2, '/never');
    const range = { from: (seqs[0] ?? 0) - 1, to: seqs.at(-1) ?? 0 };
    let status = 500;
    receiver.reply = ({ headers }) => (headers['millrace-replay'] === undefined ? 204 : status);
    const failing = await replay(id, range);
    expect(await ended(failing)).toMatchObject({ state: 'failed', sent: 0, attempts: 2 });
    expect(replayed(failing)).toHaveLength(2);
    status = 410;
    const gone = await replay(id, range);
    expect(await ended(gone)).toMatchObject({ state: 'failed', sent: 0 });
    expect((await subscriberOf(id)).state).toBe('active');
    expect([...(await errandsOf(failing)), ...(await errandsOf(gone))]).toEqual([]);
    receiver.reply = () => 204;
  });

  it('halves a refused batch, sets the bad event aside and sends all others', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/bad`, topics: [5], max: 8 });
    const seqs = await bus.publish(many(8, (i) => ({ topic: 5, ...(i === 0 && { data: { poison: true } }) })));
    await receiver.acceptedEvents(8, '/bad');
    // not recently: the next event must show that the receiver accepts others
    await until('it was recorded', async () => (await bus.readers(id))[0]?.queued === 0);
    await bus.db.exec(sql`update subscriber set last_delivered_at = null where id = ${id}`);
    receiver.reply = ({ body }) => (body.includes('poison') ? 422 : 204);
    const replayId = await replay(id, { from: (seqs[0] ?? 0) - 1, to: seqs.at(-1) ?? 0 });
    expect(await ended(replayId)).toMatchObject({ state: 'done', sent: 7 });
    const accepted = replayed(replayId).filter(({ status }) => status === 204);
    expect(accepted.flatMap((batch) => batch.seqs)).toEqual(seqs.slice(1));
    const letters = await bus.db.rows(sql`select first_seq, code from dead_letter where subscriber_id = ${id}`);
    expect(letters).toEqual([{ first_seq: seqs[0], code: 'refused' }]);
    receiver.reply = () => 204;
  });

  it('stops at its next step when it is cancelled', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/stop`, topics: [6], max: 1 });
    const seqs = await bus.publish(many(5, () => ({ topic: 6 })));
    await receiver.acceptedEvents(5, '/stop');
    receiver.reply = async ({ headers, seqs: got }) => {
      if (headers['millrace-replay'] !== undefined && got[0] === seqs[1])
        await cancelReplay(context(), author(), await subscriberOf(id), String(headers['millrace-replay']));
      return 204;
    };
    const replayId = await replay(id, { from: (seqs[0] ?? 0) - 1, to: seqs.at(-1) ?? 0 });
    await until('its errand is gone', async () => (await errandsOf(replayId)).length === 0);
    expect(await read(replayId)).toMatchObject({ state: 'cancelled', pos: seqs[0], sent: 1 });
    expect(replayed(replayId).map((batch) => batch.seqs)).toEqual([[seqs[0]], [seqs[1]]]);
    receiver.reply = () => 204;
  });

  it('waits while its subscriber is paused', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/paused`, topics: [7], max: 5 });
    const seqs = await bus.publish(many(3, () => ({ topic: 7 })));
    await receiver.acceptedEvents(3, '/paused');
    await bus.db.exec(sql`update subscriber set state = 'paused' where id = ${id}`);
    const replayId = await replay(id, { from: (seqs[0] ?? 0) - 1, to: seqs.at(-1) ?? 0 });
    await until('it waits', async () => (await errandsOf(replayId))[0]?.state === 's');
    expect(replayed(replayId)).toEqual([]);
    await resumeSubscriber(context(), author(), id, undefined);
    expect(await ended(replayId)).toMatchObject({ state: 'done', sent: 3 });
  });
});

describe('a replay of what was not delivered', () => {
  async function addLetter(subscriber: string, seq: number, body: string | null): Promise<string> {
    const batch = `${subscriber.slice(-8)}_0_${seq}_${seq}`;
    await bus.db.exec(sql`
      insert into dead_letter (id, subscriber_id, batch, first_seq, last_seq, events, body, code, attempts, at)
      values (${newId()}, ${subscriber}, ${batch}, ${seq}, ${seq}, 1, ${body}, 'max_attempts', 3, ${new Date()})`);
    return batch;
  }
  const bodyOf = (seq: number, data = '') => `[{"id":"${seq}","data":"${data}"}]`;

  it('sends the dead letters of its range, oldest first, under their ids, and deletes each that is accepted', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/letters`, topics: [8] });
    const batches = [];
    for (const seq of [905, 901, 903]) batches.push(await addLetter(id, seq, bodyOf(seq)));
    await addLetter(id, 904, null);
    await addLetter(id, 902, bodyOf(902, 'poison'));
    for (const outside of [900, 906]) await addLetter(id, outside, bodyOf(outside));
    receiver.reply = ({ body }) => (body.includes('poison') ? 422 : 204);
    const replayId = await replay(id, { from: 900, to: 905, onlyUndelivered: true });
    expect(await ended(replayId)).toMatchObject({ state: 'done', pos: 905, sent: 3 });
    const accepted = replayed(replayId).filter(({ status }) => status === 204);
    expect(accepted.map((batch) => batch.id)).toEqual([batches[1], batches[2], batches[0]]);
    expect(accepted.map(({ body }) => body)).toEqual([901, 903, 905].map((seq) => bodyOf(seq)));
    const left = await bus.db.rows<{ first_seq: number }>(
      sql`select first_seq from dead_letter where subscriber_id = ${id} order by first_seq`,
    );
    expect(left.map(({ first_seq }) => first_seq)).toEqual([900, 902, 904, 906]);
    receiver.reply = () => 204;
  });
});
