/**
 * The token processor:
 *
 * 1. It releases tokens that reached their threshold while they were held, and runs that were parked by a pause or wait at a
 *    limit.
 * 2. It removes runs and tokens that a concurrent stage has left for removed tasks, and finds tokens that were counted by a
 *    threshold before it was lowered.
 *
 * Tokens are not counted here, but in the stage that causes them (I2).
 */
import { checkpoint } from './checkpoints.ts';
import type { Service } from '../kernel/service.ts';
import { anyWaiting, releaseTokens, retireStrays, sweepGates, sweepLowered } from './queries.ts';
import type { Scheduling } from './scheduling.ts';

const batch = 1_000;
const sweepMs = 5_000;

export function tokenProcessor({ db, time, work, ready, killed: sendKills, processor }: Scheduling): Service {
  return processor('tokens', 'releasing tokens', async (signal, progress) => {
    const wait = () => work.tokens.wait(sweepMs, signal);
    // usually nothing waits: one query instead of four sweeps
    if (!(await anyWaiting(db))) return wait;
    checkpoint('tokens.release');
    const released = await releaseTokens(db, batch, new Date(time.now()));
    if (released > 0) checkpoint('tokens.released');
    ready(released);
    if (released > 0) return undefined;
    progress();
    const { passed, killed } = await sweepGates(db, batch, new Date(time.now()));
    ready(passed);
    await sendKills(killed);
    progress();
    await retireStrays(db, batch, new Date(time.now()));
    progress();
    await sweepLowered(db, new Date(time.now()));
    return wait;
  });
}
