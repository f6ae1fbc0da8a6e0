/**
 * The token processor: releases tokens that reached their threshold while they might not run, and runs that were queued
 * when their job was paused or that wait at a limit; and takes out what a stage under way left behind of tasks that were
 * removed, or counted by a threshold that was lowered. Increments themselves are part of the stage that causes them (I2), so none pass here.
 */
import { checkpoint } from './checkpoints.ts';
import type { Service } from '../kernel/service.ts';
import { anyWaiting, releaseTokens, retireStrays, sweepGates, sweepLowered } from './queries.ts';
import type { Scheduling } from './scheduling.ts';

const batch = 1_000;
const sweepMs = 5_000;

export function tokenProcessor({ db, time, work, ready, killed: tell, processor }: Scheduling): Service {
  return processor('tokens', 'releasing tokens', async (signal, progress) => {
    const wait = () => work.tokens.wait(sweepMs, signal);
    // mostly nothing waits: one look instead of four sweeps
    if (!(await anyWaiting(db))) return wait;
    checkpoint('tokens.release');
    const released = await releaseTokens(db, batch, new Date(time.now()));
    if (released > 0) checkpoint('tokens.released');
    ready(released);
    if (released > 0) return undefined;
    progress();
    const { passed, killed } = await sweepGates(db, batch, new Date(time.now()));
    ready(passed);
    await tell(killed);
    progress();
    await retireStrays(db, batch, new Date(time.now()));
    progress();
    await sweepLowered(db, new Date(time.now()));
    return wait;
  });
}
