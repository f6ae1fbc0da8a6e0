import { expect, it } from 'vitest';
import type { Report } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { Reporter } from './reporter.ts';

function makeReport(reason: string | null = null): Report {
  return { tenant: 'default', run: newId(), lease: 1, state: 'success', reason, exit_code: null, started_at: null };
}

interface Call {
  readonly reports: Report[];
  resolve(): void;
}

function setUp(refuse: (reports: readonly Report[]) => boolean = () => false): {
  reporter: Reporter;
  calls: Call[];
  settled: Report[];
  refused: Report[];
} {
  const calls: Call[] = [];
  const settled: Report[] = [];
  const refused: Report[] = [];
  const reporter = new Reporter({
    send: (reports, signal) =>
      new Promise((resolve, reject) => {
        if (refuse(reports)) reject(new Error('refused'));
        signal.addEventListener('abort', () => reject(new Error('stopped')));
        calls.push({ reports, resolve });
      }),
    onSettled: (reports) => settled.push(...reports),
    onRefused: (report) => refused.push(report),
  });
  return { reporter, calls, settled, refused };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('sends what is pending as one request, and has at most two under way', async () => {
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

it('one report that is refused does not take the others with it', async () => {
  const { reporter, calls, refused, settled } = setUp((reports) => reports.some((report) => report.reason === 'bad'));
  const reports = ['a', 'b', 'bad', 'c', 'd'].map(makeReport);
  reporter.add(reports);
  const flushed = reporter.flush();
  for (let turns = 0; reporter.unsettled > 0 && turns < 50; turns++) {
    await turn();
    for (const call of calls) call.resolve();
  }
  await flushed;
  expect(refused.map((report) => report.reason)).toEqual(['bad']);
  expect(settled).toHaveLength(5);
});

it('stopping gives up what is under way and what is pending', async () => {
  const { reporter } = setUp();
  reporter.add([makeReport()]);
  await turn();
  const flushed = reporter.flush();
  reporter.stop();
  await flushed;
  expect(reporter.unsettled).toBe(0);
});
