import { expect, it } from 'vitest';
import { TenantRecord, tenantTimes } from './tenant-record.ts';
import { TenantRecords } from './tenant-records.ts';

const none = 'none';

function makeRecords(): TenantRecords {
  const records = new TenantRecords();
  records.open(none, ['none:default', 'none:other'], 0);
  records.open('process', ['process:default'], 0);
  return records;
}
const queued = (records: TenantRecords, laneSet = none): string[] =>
  Array.from(records.queueOf(laneSet), ({ id }) => id);
/** Claims for all lanes found nothing. */
const askAll = (records: TenantRecords, now: number): void => {
  for (const laneSet of [none, 'process'])
    for (const record of records.queueOf(laneSet)) records.take(record, laneSet, now);
};

it('a hint queues its tenant for the lanes that it names, or for all', () => {
  const records = makeRecords();
  records.hint('a', 0, ['process:default', 'docker:default']);
  records.hint('b', 0, ['none:other']);
  records.hint('c', 0);
  records.hint('b', 1);
  expect([queued(records), queued(records, 'process')]).toEqual([
    ['b', 'c'],
    ['a', 'c', 'b'],
  ]);
});

it('a tenant that filled all its places goes to the end of the queue', () => {
  const records = makeRecords();
  for (const id of ['a', 'b']) records.hint(id, 0);
  const a = records.of('a');
  records.take(a, none, 0);
  records.putBack(a, none);
  expect(queued(records)).toEqual(['b', 'a']);
});

it('lanes that are polled for the first time begin with tenants that had a recent hint', () => {
  const records = makeRecords();
  records.hint('old', 0);
  records.hint('new', 5_000);
  expect([records.open('docker', ['docker:default'], 10_001), queued(records, 'docker')]).toEqual([true, ['new']]);
  expect(records.open('docker', ['docker:default'], 10_001)).toBe(false);
});

it('if hints may have been lost, tenants with a recent hint are asked once more', () => {
  const records = makeRecords();
  records.hint('a', 0);
  askAll(records, 0);
  records.recheckAll(10_000);
  expect(queued(records)).toEqual(['a']);
  askAll(records, 10_000);
  records.recheckAll(10_001);
  expect(queued(records)).toEqual([]);
});

it('only the changed tenant is asked again, if it had a recent hint', () => {
  const records = makeRecords();
  for (const id of ['a', 'b']) records.hint(id, 0);
  askAll(records, 0);
  records.recheck('a', 10_000);
  records.recheck('unheard of', 10_000);
  expect([queued(records), records.size]).toEqual([['a'], 2]);
});

it('a tenant that was just asked is not asked again because of an older report of its scheduler', () => {
  const records = makeRecords();
  records.hint('a', 0, ['none:default']);
  askAll(records, 0);
  records.remind('a', 2_999);
  expect([queued(records), queued(records, 'process')]).toEqual([[], ['a']]);
  records.remind('a', 3_000);
  expect(queued(records)).toEqual(['a']);
});

it('a tenant with a silent scheduler is asked once', () => {
  const records = makeRecords();
  records.doubt('a');
  expect(queued(records)).toEqual(['a']);
  askAll(records, 0);
  records.recheckAll(0);
  records.recheck('a', 0);
  expect(queued(records)).toEqual([]);
});

it('an unavailable tenant is dropped, unless a hint arrived after the claim', () => {
  const records = makeRecords();
  records.hint('a', 0);
  records.dropUnlessHinted(records.of('a'), 0);
  expect(queued(records)).toEqual(['a']);
  records.dropUnlessHinted(records.of('a'), 1);
  records.recheckAll(1);
  expect(queued(records)).toEqual([]);
});

it('the record of a tenant without news for a minute is deleted', () => {
  const records = makeRecords();
  records.hint('hinted', 0);
  records.doubt('asked');
  askAll(records, 0);
  records.of('known').answeredInTime(0);
  records.of('failing').failed(0);
  records.of('failing').failed(30_000);
  records.noteWork(records.of('at work'), 0);
  records.doubt('queued');
  records.of('being asked').asks.set(none, {});
  records.deleteExpired(59_999);
  expect(records.size).toBe(7);
  records.deleteExpired(60_000);
  expect(records.size).toBe(3);
  records.delete(records.of('queued'));
  expect([records.size, queued(records)]).toEqual([2, []]);
});

it('a tenant has others at work if any other had a run within five seconds', () => {
  const records = makeRecords();
  const [a, b, c] = ['a', 'b', 'c'].map((id) => records.of(id)) as [TenantRecord, TenantRecord, TenantRecord];
  const others = (now: number) => [a, b, c].map((each) => records.hasOthersAtWork(each, now));
  expect(others(0)).toEqual([false, false, false]);
  records.noteWork(a, 0);
  expect(others(0)).toEqual([false, true, true]);
  records.noteWork(b, 1_000);
  records.noteWork(b, 2_000);
  expect(others(5_000)).toEqual([true, true, true]);
  expect(others(5_001)).toEqual([true, false, true]);
  records.noteWork(a, 6_000);
  expect(others(7_000)).toEqual([true, true, true]);
  expect(others(7_001)).toEqual([false, true, true]);
  expect(others(11_001)).toEqual([false, false, false]);
});

it('concurrent failures count as one, and each further one doubles the pause up to ten seconds', () => {
  const record = new TenantRecord('a', tenantTimes);
  const pausedUntil = (now: number): number => {
    record.failed(now, () => 0);
    return record.pausedUntil - now;
  };
  expect([0, 10, 99].map((now) => pausedUntil(now) + now)).toEqual([100, 100, 100]);
  const pauses: number[] = [];
  for (let i = 0; i < 8; i++) pauses.push(pausedUntil(record.pausedUntil));
  expect(pauses).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
});

it.each([
  ['an answer in time', (record: TenantRecord) => record.answeredInTime(1), false],
  ['an answer that is late', (record: TenantRecord) => record.answeredLate(1), true],
  ['the return of the server', (record: TenantRecord) => record.resume(), true],
])('%s ends the pause after a failure', (_, end, isSlow) => {
  const record = new TenantRecord('a', tenantTimes);
  for (const now of [0, 1_000, 5_000]) record.failed(now, () => 0);
  end(record);
  expect([record.pausedUntil, record.isSlow(1)]).toEqual([Number.NEGATIVE_INFINITY, isSlow]);
  record.failed(10_000, () => 0);
  expect(record.pausedUntil).toBe(10_100);
});

it('after a minute, a slow tenant and a prompt one count as unknown', () => {
  const [slow, known] = [new TenantRecord('slow', tenantTimes), new TenantRecord('known', tenantTimes)];
  slow.isOverdue(0);
  known.answeredInTime(0);
  const states = (now: number) => [slow.isSlow(now), known.isKnown(now), known.patienceMs(now)];
  expect([states(59_999), states(60_000)]).toEqual([
    [true, true, 100],
    [false, false, 25],
  ]);
});

it('lane sets with too many lanes in all are forgotten, with the data of tenants about them', () => {
  const records = makeRecords();
  records.hint('a', 0);
  const record = records.of('a');
  askAll(records, 1);
  record.noteFlood(none, true);
  records.noteWork(record, 1);
  for (let i = 0; i < 50; i++)
    records.open(
      `many ${i}`,
      Array.from({ length: 1_000 }, (_, k) => `none:${i}-${k}`),
      1,
    );
  expect([record.askedAt.size, record.isFlooded(none, 1), queued(records, 'many 0')]).toEqual([0, false, []]);
  expect(queued(records, 'many 49')).toEqual(['a']);
  records.hint('b', 2);
  expect(queued(records, 'many 49')).toEqual(['a', 'b']);
  expect(records.open(none, ['none:default'], 3)).toBe(true);
});
