/**
 * The oracle of triggers (I1). It works out independently which instants of each trigger may have fired and which must
 * have fired, given the catch-up policy and the disturbances of the world.
 *
 * With `earliest`, `latest` and `random`, every instant of the final version of the trigger must have fired by the end.
 * With `none`, `last` or a window, an instant may be skipped, but only for a reason: no scheduler had been up for a while,
 * or the job was changed.
 */
import type { JobPlan, TriggerPlan } from './documents.ts';
import type { FiredInstant } from './ledger.ts';
import { clockTime, type Step } from './steps.ts';

/** A trigger after one change of its job. `plan` is undefined if the trigger was removed or its job deleted. */
interface Version {
  readonly atMs: number;
  readonly plan: TriggerPlan | undefined;
}

/** A span in which a scheduler was up without interruption. */
export interface Uptime {
  readonly fromMs: number;
  toMs: number;
}

interface Backfill {
  readonly id: string;
  readonly atMs: number;
  /** Instants to fire, by trigger: those that were due at `atMs` by the schedules of that time. */
  readonly instants: ReadonlyMap<string, ReadonlySet<number>>;
  readonly missing: boolean;
  cancelled: boolean;
}

/** An outage shorter than this misses nothing, under any policy. */
const graceMs = 60_000;

export class FiringsOracle {
  readonly #versions = new Map<string, Version[]>();
  /** Times at which a job as a whole was changed. */
  readonly #touched = new Map<string, number[]>();
  readonly #backfills: Backfill[] = [];

  /** Records the effect of a step on triggers. */
  take({ deed, atMs, refused }: Step): void {
    if (refused) return;
    if (deed.kind === 'apply') this.#recordVersions(deed.job, atMs);
    if (deed.kind === 'delete') this.#recordVersions({ name: deed.job, triggers: [] }, atMs);
    if (deed.kind === 'pause') this.#touch(deed.job, atMs);
    if (deed.kind === 'backfill') this.#recordBackfill(deed, atMs);
    for (const backfill of this.#backfills) {
      if (deed.kind === 'cancel backfill' && backfill.id === deed.id) backfill.cancelled = true;
    }
  }

  #recordBackfill(deed: Step['deed'] & { kind: 'backfill' }, atMs: number): void {
    const instants = new Map<string, Set<number>>();
    for (const [trigger, versions] of this.#versions) {
      const plan = versions.at(-1)?.plan;
      if (plan === undefined || !trigger.startsWith(`${deed.job}/`)) continue;
      const within = instantsOf(plan).filter(
        (instantMs) => instantMs >= deed.firstMs && instantMs <= deed.lastMs && instantMs + plan.offsetMs <= atMs,
      );
      instants.set(trigger, new Set(within));
    }
    this.#backfills.push({ id: deed.id, atMs, instants, missing: deed.missing, cancelled: false });
  }

  #recordVersions(job: Pick<JobPlan, 'name' | 'triggers'>, atMs: number): void {
    for (const [name, versions] of this.#versions) {
      const gone = name.startsWith(`${job.name}/`) && !job.triggers.some((t) => `${job.name}/${t.name}` === name);
      if (gone && versions.at(-1)?.plan !== undefined) versions.push({ atMs, plan: undefined });
    }
    for (const plan of job.triggers) {
      const name = `${job.name}/${plan.name}`;
      this.#versions.set(name, [...(this.#versions.get(name) ?? []), { atMs, plan }]);
    }
    this.#touch(job.name, atMs);
  }

  #touch(job: string, atMs: number): void {
    this.#touched.set(job, [...(this.#touched.get(job) ?? []), atMs]);
  }

  judge(fired: readonly FiredInstant[], uptimes: readonly Uptime[], endMs: number): string[] {
    const seen = new Set<string>();
    const faults: string[] = [];
    for (const firing of fired) {
      const key = `${firing.trigger} ${firing.instantMs} ${firing.cause}`;
      if (seen.has(key)) faults.push(`${formatFiring(firing)} fired twice (I1)`);
      seen.add(key);
      if (!this.#mayFire(firing))
        faults.push(`${formatFiring(firing)} fired at ${clockTime(firing.atMs)}, and must not (I1)`);
    }
    for (const [trigger, versions] of this.#versions) {
      for (const instantMs of this.#requiredInstants(trigger, versions, uptimes, endMs)) {
        if (!seen.has(`${trigger} ${instantMs} schedule`))
          faults.push(`${formatFiring({ trigger, instantMs })} did not fire (I1)`);
      }
    }
    return [...faults, ...this.#backfills.flatMap((backfill) => this.#findUnfilled(backfill, fired))];
  }

  /** Instants of a backfill that were not fired, for triggers that still exist. With `missing`, a firing of any cause counts. */
  #findUnfilled({ id, atMs, instants, missing, cancelled }: Backfill, fired: readonly FiredInstant[]): string[] {
    if (cancelled) return [];
    return [...instants].flatMap(([trigger, wanted]) => {
      const versions = this.#versions.get(trigger) ?? [];
      if (versions.some((version) => version.atMs >= atMs && version.plan === undefined)) return [];
      const have = fired.filter((firing) => firing.trigger === trigger && (missing || firing.cause === id));
      const left = new Set(wanted);
      for (const { instantMs } of have) left.delete(instantMs);
      return [...left].map((instantMs) => `${formatFiring({ trigger, instantMs })} was not backfilled (I1)`);
    });
  }

  /** An instant may fire if some version of that time schedules it, and not before it is due. */
  #mayFire({ trigger, instantMs, atMs, cause }: FiredInstant): boolean {
    if (cause !== 'schedule') {
      return this.#backfills.some(({ id, instants }) => id === cause && instants.get(trigger)?.has(instantMs));
    }
    return (this.#versions.get(trigger) ?? []).some(
      ({ plan, atMs: sinceMs }) =>
        plan !== undefined && sinceMs <= atMs && isInstant(plan, instantMs) && instantMs + plan.offsetMs <= atMs,
    );
  }

  #requiredInstants(
    trigger: string,
    versions: readonly Version[],
    uptimes: readonly Uptime[],
    endMs: number,
  ): number[] {
    const plan = versions.at(-1)?.plan;
    if (plan === undefined) return [];
    const due = instantsOf(plan).filter((instantMs) => instantMs + plan.offsetMs <= endMs);
    // instants behind an end that was brought forward are not caught up when the end is moved back
    const endedMs = Math.min(...versions.map((version) => version.plan?.endMs ?? 0));
    if (versions.every((version) => catchesUpAll(version.plan))) return due.filter((instantMs) => instantMs < endedMs);
    const touched = this.#touched.get(trigger.split('/')[0] ?? '') ?? [];
    const undisturbed = due.filter((instantMs) => isUndisturbed(instantMs + plan.offsetMs, touched, uptimes));
    const newest = versions.every((version) => catchesUpNewest(version.plan)) ? due.slice(-1) : [];
    return [...undisturbed, ...newest];
  }
}

/** False for a removed trigger: instants missed while it was out of its document are not caught up. */
function catchesUpAll(plan: TriggerPlan | undefined): boolean {
  return plan?.windowMs === undefined && ['earliest', 'latest', 'random'].includes(plan?.catchup ?? '');
}

function catchesUpNewest(plan: TriggerPlan | undefined): boolean {
  return plan?.windowMs === undefined && plan?.catchup === 'last';
}

/** Whether a scheduler was up well before and after the due time, and the job was not changed meanwhile. */
function isUndisturbed(dueMs: number, touched: readonly number[], uptimes: readonly Uptime[]): boolean {
  const [fromMs, toMs] = [dueMs - 5_000, dueMs + graceMs + 5_000];
  if (touched.some((atMs) => atMs >= dueMs - graceMs && atMs <= toMs)) return false;
  return uptimes.some((uptime) => uptime.fromMs <= fromMs && uptime.toMs >= toMs);
}

function isInstant({ startMs, endMs, periodMs }: TriggerPlan, instantMs: number): boolean {
  return instantMs >= startMs && instantMs < endMs && (instantMs - startMs) % periodMs === 0;
}

function instantsOf({ startMs, endMs, periodMs }: TriggerPlan): number[] {
  return Array.from({ length: Math.ceil((endMs - startMs) / periodMs) }, (_, i) => startMs + i * periodMs);
}

function formatFiring({ trigger, instantMs }: { trigger: string; instantMs: number }): string {
  return `${trigger} for ${clockTime(instantMs)}`;
}
