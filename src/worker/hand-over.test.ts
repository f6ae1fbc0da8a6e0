/** The places that a report offers, and the runs in its answer. */
import { beforeEach, expect, it } from 'vitest';
import { until } from '../../test/harness/until.ts';
import type { ClaimedRun, Report, ReportAnswer, ReportRequest } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { handOver, keepPlaceMs, type Lanes } from './hand-over.ts';
import { Places } from './places.ts';

const signal = new AbortController().signal;
const quick: Lanes = { runtimes: ['none'], queues: ['default'] };
const placed: Lanes = { runtimes: ['process'], queues: ['default'] };

let places: Places;
let lanes: { quick: Lanes | undefined; placed: Lanes | undefined };
let sent: Pick<ReportRequest, 'reports' | 'places'>[];
let accepted: { runs: readonly ClaimedRun[]; takesPlace: boolean; isLate: boolean }[];
let freed: number;
let nowMs = 0;
let answer: () => Promise<ReportAnswer>;
beforeEach(() => {
  places = new Places(3);
  lanes = { quick, placed };
  sent = [];
  accepted = [];
  freed = 0;
  answer = async () => ({ accepted: 1, failed: [] });
});

function send(tenant = 'a', report = handOverTo()): ReturnType<typeof report> {
  const ended = { run: newId(), lease: 1, state: 'success', reason: null, exit_code: null, started_at: null } as const;
  const reports: Report[] = [{ tenant, ...ended }];
  return report(reports, signal);
}

function handOverTo(waitMs = 60_000): ReturnType<typeof handOver> {
  return handOver({
    places,
    lanesOf: (takesPlace) => (takesPlace ? lanes.placed : lanes.quick),
    send: (message) => {
      sent.push(message);
      return answer();
    },
    accept: (runs, how) => void accepted.push({ runs, ...how }),
    onFree: () => void freed++,
    waitMs,
    now: () => nowMs,
  });
}

const freeOf = (message: (typeof sent)[number] | undefined): (number | undefined)[] =>
  [quick, placed].map(({ runtimes }) => message?.places?.find((each) => each.runtimes === runtimes)?.free);

it('a report offers the free places that no poll asks for', async () => {
  places.take();
  const settle = places.poll(1);
  await send();
  settle();
  await send();
  expect(sent.map(freeOf)).toEqual([
    [64, 1],
    [64, 2],
  ]);
});

it('a poll does not ask for places that a report offers', async () => {
  let free = -1;
  answer = async () => {
    free = places.free;
    return { accepted: 1, failed: [] };
  };
  await send();
  expect([free, places.free]).toEqual([0, 3]);
});

it('places are free again if the report could not be sent', async () => {
  answer = () => Promise.reject(new Error('stopped'));
  await expect(send()).rejects.toThrow('stopped');
  expect(places.free).toBe(3);
});

it('each run of the answer is accepted for the places that it came for', async () => {
  const [first, second] = [{ run: '1' } as ClaimedRun, { run: '2' } as ClaimedRun];
  answer = async () => ({ accepted: 1, failed: [], runs: [[first], [second]] });
  await send();
  expect(accepted).toEqual([
    { runs: [first], takesPlace: false, isLate: false },
    { runs: [second], takesPlace: true, isLate: false },
  ]);
});

it('a report offers no places if no runs may be claimed', async () => {
  lanes = { quick: undefined, placed: undefined };
  await send();
  expect(sent[0]?.places).toEqual([]);
});

it('reports of a tenant that answered late offer no places, those of others do', async () => {
  const report = handOverTo();
  answer = async () => {
    nowMs += keepPlaceMs + 1;
    return { accepted: 1, failed: [] };
  };
  await send('slow', report);
  answer = async () => ({ accepted: 1, failed: [] });
  await send('slow', report);
  await send('other', report);
  await send('slow', report);
  expect(sent.map(({ places: offered }) => offered?.length)).toEqual([2, 0, 2, 2]);
});

it('places wait for a late answer for a while only, and its runs are accepted as late', async () => {
  let respond = (_answer: ReportAnswer): void => {};
  answer = () => new Promise((resolve) => (respond = resolve));
  const sending = send('a', handOverTo(1));
  await until('the places are free', () => freed === 1 || undefined);
  expect(places.free).toBe(3);
  respond({ accepted: 1, failed: [], runs: [[], [{ run: '1' } as ClaimedRun]] });
  await sending;
  expect([places.free, accepted.map(({ isLate }) => isLate)]).toEqual([3, [true, true]]);
});
