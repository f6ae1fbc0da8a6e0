/** The places that a report offers, and the runs in its answer. */
import { beforeEach, expect, it } from 'vitest';
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
let accepted: { runs: readonly ClaimedRun[]; takesPlace: boolean }[];
let nowMs = 0;
let answer: () => Promise<ReportAnswer>;
beforeEach(() => {
  places = new Places(3);
  lanes = { quick, placed };
  sent = [];
  accepted = [];
  answer = async () => ({ accepted: 1, failed: [] });
});

function send(tenant = 'a', report = handOverTo()): ReturnType<typeof report> {
  const ended = { run: newId(), lease: 1, state: 'success', reason: null, exit_code: null, started_at: null } as const;
  const reports: Report[] = [{ tenant, ...ended }];
  return report(reports, signal);
}

function handOverTo(): ReturnType<typeof handOver> {
  return handOver({
    places,
    lanesOf: (takesPlace) => (takesPlace ? lanes.placed : lanes.quick),
    send: (message) => {
      sent.push(message);
      return answer();
    },
    accept: (runs, takesPlace) => void accepted.push({ runs, takesPlace }),
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
    { runs: [first], takesPlace: false },
    { runs: [second], takesPlace: true },
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
