/**
 * Measures how long ready runs of one tenant wait for a free place. Workers poll a claim desk and report to a report desk.
 * Runs are made ready one after the other, and each is timed from its commit until a worker has claimed it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClaimedRun, Report } from '../../src/contract/wire.ts';
import { ClaimDesk } from '../../src/gateway/claims/claim-desk.ts';
import { ReportDesk } from '../../src/gateway/desks/report-desk.ts';
import { Servings } from '../../src/gateway/desks/servings.ts';
import { BatchTurns } from '../../src/gateway/claims/batch-turns.ts';
import { newId } from '../../src/kernel/id.ts';
import { silent } from '../../src/kernel/log.ts';
import type { Loader } from '../../src/loader/loader.ts';
import type { Fleet, TestTenant } from './fleet.ts';

export interface HandOverOptions {
  readonly fleet: Fleet;
  readonly loader: Loader;
  /** The tenant whose runs are timed. */
  readonly tenant: TestTenant;
  /** Tenants that are announced as ready every 20 ms, whether they have runs or not. */
  readonly noisy: readonly TestTenant[];
  readonly runs: number;
}

const workers = 4;
const places = 4;
/** Duration of a run, and the pause between two timed runs. */
const workMs = 5;
/** Runs that are not counted, because they open connections and prepare statements. */
const warmUp = 20;

/** Returns the waiting times in milliseconds, sorted. */
export async function measureHandOvers(options: HandOverOptions): Promise<number[]> {
  const { fleet, loader, tenant, noisy, runs } = options;
  const { db: control } = fleet.control;
  const servings = new Servings(control, silent);
  const turns = new BatchTurns();
  const claims = new ClaimDesk({ loader, control, servings, turns, log: silent, leaseMs: 30_000 });
  const reports = new ReportDesk(loader, turns);
  const over = new AbortController();
  const takenMs = new Map<string, number>();
  let onTaken = (): void => {};
  const onClaimed = (run: ClaimedRun): void => {
    if (run.tenant === tenant.row.id) takenMs.set(run.run, performance.now());
    onTaken();
  };
  await claims.service.start();
  const working = Array.from({ length: workers }, () => work({ claims, reports }, onClaimed, over.signal));
  const ringing = setInterval(() => noisy.forEach(({ row }) => claims.ready(row.id)), 20);
  const times: number[] = [];
  for (let i = -warmUp; i < runs; i++) {
    const [run = ''] = await tenant.ready(1);
    const readyMs = performance.now();
    claims.ready(tenant.row.id);
    // a claim that was under way may have taken the run before its id was known here
    while (!takenMs.has(run)) await new Promise<void>((resolve) => (onTaken = resolve));
    if (i >= 0) times.push(Math.max(0, (takenMs.get(run) ?? 0) - readyMs));
    await sleep(workMs);
  }
  clearInterval(ringing);
  over.abort();
  await Promise.all(working);
  await claims.service.stop();
  return times.toSorted((x, y) => x - y);
}

interface Desks {
  readonly claims: ClaimDesk;
  readonly reports: ReportDesk;
}

/** A worker with a few places, which reports each run after `workMs`. */
async function work(desks: Desks, onClaimed: (run: ClaimedRun) => void, signal: AbortSignal): Promise<void> {
  const self = { worker: newId(), incarnation: 1, wait_ms: 1_000, seen: {} };
  const lanes = { runtimes: ['none' as const], queues: ['default'] };
  let free = places;
  let freed = (): void => {};
  while (!signal.aborted) {
    const runs = await desks.claims.claim({ ...self, ...lanes, free }, signal);
    free -= runs.length;
    for (const run of runs) {
      onClaimed(run);
      void execute(desks.reports, run).finally(() => {
        free++;
        freed();
      });
    }
    if (free === 0) await new Promise<void>((resolve) => (freed = resolve));
  }
}

/** The place is free when the work is done, without waiting for the report. */
async function execute(reports: ReportDesk, { tenant, run, lease }: ClaimedRun): Promise<void> {
  await sleep(workMs);
  const report: Report = { tenant, run, lease, state: 'success', reason: null, exit_code: 0, started_at: null };
  void reports.report([report]);
}

export function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
