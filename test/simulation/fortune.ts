/** How and when runs end in a world. It depends on a run's name, not on earlier events, so that one change changes little. */
import type { ClaimedRun, ReportState } from '../../src/contract/wire.ts';
import type { JobPlan } from './documents.ts';
import { Random } from './random.ts';
import type { World } from './world.ts';

export type Fortune = (run: ClaimedRun) => { readonly state: ReportState; readonly ms: number };

/** From here on runs fail, so that what branches again and again comes to an end. */
const maxSuccessfulRuns = 120;
const states = { success: 60, failure: 22, timeout: 6, error: 8, cancelled: 2, returned: 2, lost: 2 };

/** In the calm, a success that would continue a cycle for ever becomes a failure. */
export function fortuneOf(world: World, users: { readonly jobs: readonly JobPlan[] }): Fortune {
  return (run) => {
    const name = world.names.get(run.task ?? '') ?? '';
    const random = new Random(`${world.seed} ${name} ${run.instant} ${run.attempt} ${run.lease}`);
    const state = random.weighted<ReportState>(states);
    const ms = random.pick([0, 100, 2_000, 5_000, 15_000]);
    const isEndless = state === 'success' && !world.chaos && closesCycle(users.jobs, name);
    if (isEndless || world.runCount > maxSuccessfulRuns) return { state: 'failure', ms };
    return { state, ms: world.chaos ? ms : 0 };
  };
}

/** Whether a task at the same or an earlier position of the document depends on it. */
function closesCycle(jobs: readonly JobPlan[], name: string): boolean {
  const [jobName, taskName] = name.split('/');
  const tasks = jobs.find((job) => job.name === jobName)?.tasks ?? [];
  const place = tasks.findIndex((task) => task.name === taskName);
  return tasks
    .slice(0, place + 1)
    .some(({ edges }) =>
      edges.some((edge) => edge.kind !== 'trigger' && edge.job === jobName && edge.parent === taskName),
    );
}
