import { expect, it, vi } from 'vitest';
import type { Failure, Report } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { Reporter } from './reporter.ts';

const patience = { timeout: 10_000, interval: 1 };

function makeReport(reason: string | null = null, tenant = 'default'): Report {
  return { tenant, run: newId(), lease: 1, state: 'success', reason, exit_code: null, started_at: null };
}

interface Call {
  readonly reports: Report[];
  resolve(failed?: Failure[]): void;
}

function setUp(refuse: (reports: readonly Report[]) => boolean = () => false): {
  reporter: Reporter;
  calls: Call[];
  settled: Report[];
  refused: Report[];
  aside: string[];
} {
  const calls: Call[] = [];
  const settled: Report[] = [];
  const refused: Report[] = [];
  const aside: string[] = [];
  const reporter = new Reporter({
    send: (reports, signal) =>
      new Promise((resolve, reject) => {
        if (refuse(reports)) reject(new Error('refused'));
        signal.addEventListener('abort', () => reject(new Error('stopped')));
        calls.push({ reports, resolve: (failed = []) => resolve(failed) });
      }),
    onSettled: (reports) => settled.push(...reports),
    onRefused: (report) => refused.push(report),
    onAside: ({ tenant }) => aside.push(tenant),
  });
  return { reporter, calls, settled, refused, aside };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Answers requests until none is left. */
async function answerAll(reporter: Reporter, calls: readonly Call[]): Promise<void> {
  const flushed = reporter.flush();
  for (let turns = 0; reporter.unsettled > 0 && turns < 50; turns++) {
    await turn();
    for (const call of calls) call.resolve();
  }
  await flushed;
}

it('pending reports are sent as one request, with at most two under way', async () => {
  const { reporter, calls, settled } = setUp();
  const reports = Array.from({ length: 6 }, () => makeReport());
  reporter.add(reports.slice(0, 2));
  reporter.add(reports.slice(2, 3));
  await turn();
  reporter.add(reports.slice(3, 4));
  await turn();
  reporter.add(reports.slice(4, 5));
  reporter.add(reports.slice(5));
  await turn();
  expect(calls.map((call) => call.reports.length)).toEqual([3, 1]);
  expect(reporter.unsettled).toBe(6);
  calls[0]?.resolve();
  await turn();
  expect(calls.map((call) => call.reports.length)).toEqual([3, 1, 2]);
  expect(settled).toEqual(reports.slice(0, 3));
  const flushed = reporter.flush();
  for (const call of calls) call.resolve();
  await flushed;
  expect(new Set(settled)).toEqual(new Set(reports));
  await reporter.flush();
});

it('further reports of a tenant with many under way share no request with others', async () => {
  const { reporter, calls } = setUp();
  const some = (count: number, tenant: string): Report[] =>
    Array.from({ length: count }, () => makeReport(null, tenant));
  reporter.add(some(200, 'flooded'));
  await turn();
  reporter.add([...some(1, 'flooded'), ...some(1, 'quiet')]);
  await turn();
  const tenants = calls.map(({ reports }) => [...new Set(reports.map(({ tenant }) => tenant))]);
  expect(tenants).toEqual([['flooded'], ['quiet'], ['flooded']]);
  reporter.stop();
});

it('reports of a tenant with few do not wait for a tenant with many', async () => {
  const { reporter, calls } = setUp();
  const some = (count: number, tenant: string): Report[] =>
    Array.from({ length: count }, () => makeReport(null, tenant));
  const sent = (): (readonly [string, number])[] =>
    calls.map(({ reports }) => [[...new Set(reports.map(({ tenant }) => tenant))].join(' '), reports.length]);
  for (let i = 0; i < 3; i++) {
    reporter.add(some(1_500, 'flooded'));
    await turn();
  }
  reporter.add([...some(1, 'a'), ...some(1_500, 'flooded'), ...some(2, 'b')]);
  await turn();
  // two requests of the flooded tenant are under way, and its other reports wait
  expect(sent()).toEqual([
    ['flooded', 1_500],
    ['flooded', 1_500],
    ['a b', 3],
  ]);
  expect([reporter.tenantsWith(2), reporter.tenantsWith(5_999), reporter.tenantsWith(6_000)]).toEqual([
    ['flooded'],
    ['flooded'],
    [],
  ]);
  calls[0]?.resolve();
  await turn();
  expect(sent().at(-1)).toEqual(['flooded', 2_000]);
  reporter.add(some(1, 'a'));
  await turn();
  expect(sent().at(-1)).toEqual(['a', 1]);
  await answerAll(reporter, calls);
  expect(reporter.tenantsWith(0)).toEqual([]);
});

it('a tenant with few reports is sent at once beside any number of tenants with many, which continue when a request returns', async () => {
  const { reporter, calls } = setUp();
  const some = (count: number, tenant: string): Report[] =>
    Array.from({ length: count }, () => makeReport(null, tenant));
  const flooded = ['a', 'b', 'c', 'd', 'e'];
  for (let i = 0; i < 3; i++) {
    for (const tenant of flooded) reporter.add(some(150, tenant));
    await turn();
  }
  expect(calls).toHaveLength(6);
  reporter.add(some(1, 'quiet'));
  await turn();
  expect(calls.at(-1)?.reports.map(({ tenant }) => tenant)).toEqual(['quiet']);
  calls[0]?.resolve();
  await turn();
  expect(calls).toHaveLength(8);
  expect(flooded).toContain(calls.at(-1)?.reports[0]?.tenant);
  await answerAll(reporter, calls);
});

it('a request stays small with long reasons, and all reports are sent in order', async () => {
  const { reporter, calls, settled } = setUp();
  const longest = '\u0001'.repeat(4_000); // six bytes each in JSON
  const reports = ['a', 'b'].flatMap((tenant) => Array.from({ length: 90 }, () => makeReport(longest, tenant)));
  reporter.add(reports);
  await answerAll(reporter, calls);
  const sizes = calls.map((call) => JSON.stringify(call.reports).length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000_000);
  expect(sizes.length).toBeLessThan(8);
  for (const tenant of ['a', 'b']) {
    const of = (list: readonly Report[]): Report[] => list.filter((report) => report.tenant === tenant);
    expect(of(calls.flatMap((call) => call.reports))).toEqual(of(reports));
  }
  expect(settled).toHaveLength(180);
});

it('repeated reports of an unavailable tenant are sent in small requests', async () => {
  const { reporter, calls } = setUp();
  reporter.add([makeReport(null, 'b')]);
  await turn();
  calls[0]?.resolve([away('b')]);
  await turn();
  reporter.add(Array.from({ length: 300 }, () => makeReport('x'.repeat(4_000), 'b')));
  await vi.waitFor(() => expect(calls).toHaveLength(2), patience);
  expect(JSON.stringify(calls[1]?.reports).length).toBeLessThanOrEqual(1_000_000);
  reporter.stop();
});

it('a rejected report does not affect the others', async () => {
  const { reporter, calls, refused, settled } = setUp((reports) => reports.some((report) => report.reason === 'bad'));
  const reports = ['a', 'b', 'bad', 'c', 'd'].map((reason) => makeReport(reason));
  reporter.add(reports);
  await answerAll(reporter, calls);
  expect(refused.map((report) => report.reason)).toEqual(['bad']);
  expect(settled).toHaveLength(5);
});

it('stop abandons pending reports and those under way', async () => {
  const { reporter } = setUp();
  reporter.add([makeReport()]);
  await turn();
  const flushed = reporter.flush();
  reporter.stop();
  await flushed;
  expect(reporter.unsettled).toBe(0);
});

const away = (tenant: string): Failure => ({ tenant, code: 'tenant_unavailable', detail: 'out of reach' });

it('failed reports of a tenant are repeated in separate requests, and delay no other tenant', async () => {
  const { reporter, calls, settled, aside } = setUp();
  const [a1, b1, a2, b2] = ['a', 'b', 'a', 'b'].map((tenant) => makeReport(null, tenant)) as [
    Report,
    Report,
    Report,
    Report,
  ];
  reporter.add([a1, b1]);
  await turn();
  calls[0]?.resolve([away('b')]);
  await turn();
  expect([settled, aside, reporter.unsettled, reporter.stuck]).toEqual([[a1], ['b'], 1, 1]);
  reporter.add([a2, b2]);
  await turn();
  expect(calls[1]?.reports).toEqual([a2]);
  await vi.waitFor(() => expect(calls[2]?.reports).toEqual([b1, b2]), patience);
  calls[1]?.resolve();
  await turn();
  expect(settled).toEqual([a1, a2]);
  calls[2]?.resolve([away('b')]);
  await vi.waitFor(() => expect(calls[3]?.reports).toEqual([b1, b2]), patience);
  // during the retries, the others have their two requests
  reporter.add([makeReport(null, 'a')]);
  await turn();
  reporter.add([makeReport(null, 'a')]);
  await turn();
  expect(calls).toHaveLength(6);
  const flushed = reporter.flush();
  for (const call of calls.slice(3)) call.resolve();
  await flushed;
  await turn();
  expect([aside, reporter.stuck]).toEqual([['b'], 0]);
  reporter.add([makeReport(null, 'b'), makeReport(null, 'a')]);
  await turn();
  expect(calls.at(-1)?.reports).toHaveLength(2);
});

it('a report that is listed as rejected is abandoned, and the others of its tenant are not', async () => {
  const { reporter, calls, settled, refused } = setUp();
  const [good, bad] = [makeReport('good'), makeReport('bad')];
  reporter.add([good, bad]);
  await turn();
  calls[0]?.resolve([{ tenant: 'default', run: bad.run, code: 'bad_request', detail: 'no' }]);
  await reporter.flush();
  expect([refused, settled.length, calls.length]).toEqual([[bad], 2, 1]);
});

it('if a tenant accepted some reports and the others are listed, only those are repeated, and soon', async () => {
  const { reporter, calls, settled, aside } = setUp();
  const [taken, late, refused, other] = [makeReport(), makeReport(), makeReport(), makeReport(null, 'other')];
  reporter.add([taken, late, refused, other]);
  await turn();
  const failure = away('default');
  calls[0]?.resolve([
    { ...failure, runs: [late.run] },
    { ...failure, runs: [refused.run] },
    { ...failure, code: 'bad_request', run: refused.run },
  ]);
  await turn();
  expect([settled, reporter.stuck, aside]).toEqual([[taken, refused, other], 1, ['default']]);
  await vi.waitFor(() => expect(calls[1]?.reports).toEqual([late]), patience);
  // while it accepts some each time, the pauses do not grow
  const more = Array.from({ length: 20 }, () => makeReport());
  reporter.add(more);
  const startedMs = performance.now();
  calls[1]?.resolve();
  for (let i = 2; i < 22; i++) {
    await vi.waitFor(() => expect(calls).toHaveLength(i + 1), patience);
    calls[i]?.resolve([{ ...failure, runs: calls[i]?.reports.slice(1).map(({ run }) => run) }]);
  }
  await reporter.flush();
  expect(performance.now() - startedMs).toBeLessThan(10_000);
  expect(settled).toHaveLength(24);
});

it('stop abandons the reports of tenants that were set aside', async () => {
  const { reporter, calls, settled } = setUp();
  reporter.add([makeReport(null, 'b')]);
  await turn();
  calls[0]?.resolve([away('b')]);
  await vi.waitFor(() => expect(calls).toHaveLength(2), patience);
  reporter.stop();
  await reporter.flush();
  expect(settled).toHaveLength(1);
});
