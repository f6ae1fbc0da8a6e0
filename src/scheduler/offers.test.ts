/** Hints about ready runs: they name the lanes, so that workers of other lanes do not poll in vain. The first comes with the warm-up. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makeContext, type TestContext } from '../../test/harness/engine-context.ts';
import { claim, makePipeline, type Pipeline } from '../../test/harness/pipeline.ts';
import { after, minute, noon, Schedule } from '../../test/harness/scheduling.ts';
import { until } from '../../test/harness/until.ts';
import type { Report } from '../contract/wire.ts';
import { fireTriggers } from './queries.ts';
import { warmUpLeadMs } from './triggers.ts';
import { applyReports } from '../runs/report.ts';

let line: Pipeline;
let ctx: TestContext;
let offered: (readonly string[] | undefined)[];

beforeEach(async () => {
  line = await makePipeline();
  offered = [];
  const made = makeContext(line);
  made.hub.on('ready', made.tenant.id, (lanes) => void offered.push(lanes));
  ctx = made;
});
afterEach(() => line.close());

const fire = (triggerId: string) =>
  fireTriggers(line.db, [{ triggerId, instantMs: Date.parse(noon) }], {
    priority: 'normal',
    at: new Date(line.time.now()),
  });

async function succeed(lane: string, state: Report['state'] = 'success'): Promise<void> {
  const runs = await claim(line, lane);
  const reports = runs.map(({ id: run, lease }) => {
    return { tenant: ctx.tenant.id, run, lease, state, reason: null, exit_code: null, started_at: null };
  });
  await applyReports(ctx, 'test', reports);
}

const triggers = [{ name: 't', start: noon, period: '1h' }];

it('firings and reports name the lanes of the runs that they create', async () => {
  const job = await line.job({
    triggers,
    tasks: [
      { name: 'a', depends: ['trigger/t'], queue: 'one' },
      { name: 'b', depends: ['trigger/t'], queue: 'two' },
      { name: 'c', depends: ['task/a'], queue: 'three' },
    ],
  });
  expect((await fire(job.trigger('t'))).lanes).toEqual(['none:one', 'none:two']);
  await succeed('none:one');
  expect(offered).toEqual([['none:three']]);
});

it('hints about returned runs, and runs behind a gate, name no lanes', async () => {
  const job = await line.job({
    triggers,
    tasks: [{ name: 'a', depends: ['trigger/t'], queue: 'one', max_running: 1 }],
  });
  expect(await fire(job.trigger('t'))).toMatchObject({ created: 1, lanes: null });
  await succeed('none:one', 'returned');
  expect(offered).toEqual([undefined]);
});

it('gateways hear of the first due trigger before it fires, so that they prepare their claims', async () => {
  const schedule = await Schedule.make();
  try {
    let hints = 0;
    schedule.ctx.hub.on('ready', schedule.ctx.tenant.id, () => hints++);
    const due = after(20 * minute);
    const job = await schedule.triggered({ start: due, period: '1d' });
    await schedule.start();
    await schedule.waitsFor(due);
    expect(hints).toBe(0);
    schedule.line.time.moveTo(Date.parse(due) - warmUpLeadMs(schedule.ctx.tenant.id));
    await until('a hint is sent', async () => hints > 0 || undefined);
    expect(await schedule.fired(job)).toEqual([]);
    schedule.line.time.moveTo(due);
    await schedule.firedAre(job, [due]);
  } finally {
    await schedule.close();
  }
});
