/** Deliveries end to end: a real database, real receivers, one courier. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../kernel/sql.ts';
import { many, TestBus } from '../../../test/harness/bus.ts';
import { type BusReceiver, makeBusReceiver, type Reply } from '../../../test/harness/bus-receiver.ts';
import { until } from '../../../test/harness/until.ts';

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

describe('a courier', () => {
  it('delivers events in full batches, in order, and removes the errand', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/full`, topics: [1], max: 10 });
    const seqs = await bus.publish(many(25));
    expect(await receiver.acceptedEvents(25, '/full')).toEqual(seqs);
    const batches = receiver.received.filter(({ path }) => path === '/full');
    expect(batches.map((batch) => batch.seqs.length)).toEqual([10, 10, 5]);
    const [first] = batches;
    expect(first?.id).toBe(`${id.slice(-8)}_0_${seqs[0]}_${seqs[9]}`);
    expect(first?.headers['content-type']).toBe('application/json');
    expect(first?.headers.authorization).toBe(`Basic ${Buffer.from(`uuid-${id}:x`).toString('base64')}`);
    expect(first?.headers['millrace-attempt']).toBe('1');
    expect(first?.headers['traceparent']).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    await until('the errand is gone', async () => {
      const { n } = await bus.db.one<{ n: number }>(sql`select count(*) as n from errand where key like ${`%${id}%`}`);
      return n === 0;
    });
    const [reader] = await bus.readers(id);
    expect(reader).toMatchObject({ pos: seqs.at(-1), queued: 0, sent: 25, batch_end: null, oldest_at: null });
  });

  it('closes a batch that is not full when its window is over, and stores its end first', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/window`, topics: [2], max: 100, windowMs: 150 });
    let storedEnd: number | null | undefined;
    const former = receiver.reply;
    receiver.reply = async ({ path }) => {
      if (path === '/window') storedEnd = (await bus.readers(id))[0]?.batch_end;
      return 204;
    };
    const seqs = await bus.publish(many(3, () => ({ topic: 2 })));
    expect(await receiver.acceptedEvents(3, '/window')).toEqual(seqs);
    expect(storedEnd).toBe(seqs.at(-1));
    receiver.reply = former;
  });

  it('repeats a failed batch under the same id with the same bytes', async () => {
    const replies: Reply[] = [500, 'reset', 'hang', 'lie'];
    await bus.subscribe({ callback: `${receiver.url}/sick`, topics: [3], max: 5, requestMs: 300 });
    receiver.reply = ({ path }) => (path === '/sick' ? (replies.shift() ?? 204) : 204);
    const seqs = await bus.publish(many(5, () => ({ topic: 3 })));
    expect(await receiver.acceptedEvents(5, '/sick')).toEqual(seqs);
    const sent = receiver.received.filter(({ path }) => path === '/sick');
    expect(new Set(sent.map(({ id }) => id)).size).toBe(1);
    expect(new Set(sent.map(({ body }) => body)).size).toBe(1);
    // a status is a delivery, whatever becomes of the body
    expect(sent.map(({ status }) => status)).toEqual([500, undefined, undefined, 200]);
    expect(sent.map(({ headers }) => headers['millrace-attempt'])).toEqual(['1', '2', '3', '4']);
  });

  it('halves a refused batch until the bad event is alone, and delivers all others', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/bad`, topics: [4], max: 16 });
    receiver.reply = ({ path, body }) => (path === '/bad' && body.includes('poison') ? 422 : 204);
    const seqs = await bus.publish(many(16, (i) => ({ topic: 4, ...(i === 9 && { data: { poison: true } }) })));
    const good = seqs.filter((_, i) => i !== 9);
    expect(await receiver.acceptedEvents(15, '/bad')).toEqual(good);
    const letters = await until('the dead letter is there', async () => {
      const rows = await bus.db.rows<{
        first_seq: number;
        last_seq: number;
        status: number;
        code: string;
        body: string;
      }>(sql`select first_seq, last_seq, status, code, body from dead_letter where subscriber_id = ${id}`);
      return rows.length > 0 ? rows : undefined;
    });
    expect(letters).toMatchObject([{ first_seq: seqs[9], last_seq: seqs[9], status: 422, code: 'refused' }]);
    expect(letters[0]?.body).toContain('poison');
    await until('nothing is queued', async () => (await bus.readers(id))[0]?.queued === 0);
    expect((await bus.readers(id))[0]).toMatchObject({ sent: 15, pos: seqs.at(-1) });
  });

  it('gives up a bad first event only after the next one was accepted', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/first`, topics: [5], max: 1 });
    receiver.reply = ({ path, body }) => (path === '/first' && body.includes('poison') ? 400 : 204);
    const [bad] = await bus.publish([{ topic: 5, data: { poison: true } }]);
    await until('it was tried', async () => ((await bus.readers(id))[0]?.attempts ?? 0) > 0);
    const letters = () => bus.db.rows(sql`select first_seq from dead_letter where subscriber_id = ${id}`);
    expect(await letters()).toEqual([]);
    const [good] = await bus.publish([{ topic: 5 }]);
    expect(await receiver.acceptedEvents(1, '/first')).toEqual([good]);
    expect(
      await until('it is a dead letter', async () => ((await letters()).length > 0 ? letters() : undefined)),
    ).toEqual([{ first_seq: bad }]);
    expect((await bus.readers(id))[0]).toMatchObject({ queued: 0, sent: 1, pos: good });
  });

  it('disables a subscriber whose receiver is gone, and keeps its events', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/gone`, topics: [6], max: 2 });
    receiver.reply = ({ path }) => (path === '/gone' ? 410 : 204);
    await bus.publish(many(4, () => ({ topic: 6 })));
    const state = await until('it is disabled', async () => {
      const row = await bus.db.one<{ state: string; reason: string }>(
        sql`select state, reason from subscriber where id = ${id}`,
      );
      return row.state === 'disabled' ? row : undefined;
    });
    expect(state.reason).toContain('410');
    expect((await bus.readers(id))[0]).toMatchObject({ queued: 4, sent: 0 });
    const events = await bus.db.rows<{ type: string }>(sql`select type from event where subject = ${id}`);
    expect(events).toEqual([{ type: 'subscriber.disabled' }]);
  });

  it('waits as long as Retry-After says', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/busy`, topics: [7], max: 1 });
    receiver.reply = ({ path }) => (path === '/busy' ? { status: 429, headers: { 'retry-after': '600' } } : 204);
    await bus.publish([{ topic: 7 }]);
    const runAt = await until('the errand waits', async () => {
      const row = await bus.db.maybeOne<{ run_at: Date | null }>(
        sql`select run_at from errand where key like ${`%${id}%`} and state = 's' and reason is not null`,
      );
      return row?.run_at ?? undefined;
    });
    expect(runAt.getTime() - Date.now()).toBeGreaterThan(500_000);
  });

  it('delivers only events that pass the filter of the revision in force at their number', async () => {
    const callback = `${receiver.url}/filter`;
    receiver.reply = () => 204;
    const id = await bus.subscribe({ callback, topics: [8], max: 3, filter: { 'data.n': { $gte: 5 } } });
    await bus.db.exec(sql`update subscriber set state = 'paused' where id = ${id}`);
    const before = await bus.publish(many(8, (n) => ({ topic: 8, data: { n } })));
    await bus.change(id, { callback, topics: [8], max: 10, filter: { 'data.n': { $lt: 2 } } });
    const after = await bus.publish(many(8, (n) => ({ topic: 8, data: { n } })));
    await until('all are counted', async () => (await bus.readers(id))[0]?.queued === 5);
    await bus.db.exec(sql`update subscriber set state = 'active' where id = ${id}`);
    await bus.db.exec(sql`select mend_errands()`);
    bus.ctx.hints.send('bus');
    const expected = [...before.slice(5), ...after.slice(0, 2)];
    expect(await receiver.acceptedEvents(5, '/filter')).toEqual(expected);
    const batches = receiver.received.filter(({ path }) => path === '/filter');
    // the limits of the first event's revision
    expect(batches.map(({ seqs }) => seqs.length)).toEqual([3, 2]);
  });
});
