/** Waits until a replay ends and prints its progress to stderr. Exits with 1 unless it is done. */
import { delayMs } from '../../../kernel/backoff.ts';
import { pause } from '../../../kernel/service.ts';
import { Ended, exitCodes } from '../../session/exit.ts';
import type { Session } from '../../session/session.ts';
import { makeProgressPrinter } from '../backfills/follow-backfill.ts';
import { isTransient, patienceMs } from '../runs/follow-runs.ts';
import type { SubscriberCalls } from './subscriber-calls.ts';

type Replay = Awaited<ReturnType<SubscriberCalls['readReplay']>>;

const polling = { firstMs: 200, capMs: 2_000, jitter: 0 };

export async function followReplay(session: Session, calls: SubscriberCalls, id: string): Promise<void> {
  const replay = await waitForEnd(session, calls, id);
  session.out.answer(replay, () => session.out.line(`${replay.id} ${replay.state}`));
  if (replay.state !== 'done') throw new Ended(exitCodes.failed);
}

async function waitForEnd(session: Session, calls: SubscriberCalls, id: string): Promise<Replay> {
  const printProgress = makeProgressPrinter(session);
  let answeredAt = Date.now();
  for (let attempt = 0; ; attempt++) {
    session.signal.throwIfAborted();
    try {
      const replay = await calls.readReplay(id);
      answeredAt = Date.now();
      const isOver = replay.state !== 'running';
      printProgress(formatProgress(replay), isOver);
      if (isOver) return replay;
    } catch (error) {
      if (!isTransient(error) || Date.now() - answeredAt > patienceMs) throw error;
    }
    await pause(delayMs(polling, attempt), session.signal);
  }
}

/** `at event 1200 of 1001 to 2000 (20 %), 150 events sent` */
function formatProgress({ from, to, position, sent, state }: Replay): string {
  const [first, last, at] = [Number(from), Number(to), Number(position)];
  const part = last > first ? Math.min(1, Math.max(0, (at - first) / (last - first))) : 1;
  const heading = state === 'running' ? '' : `${state}: `;
  return `${heading}at event ${Math.max(first, at)} of ${first + 1} to ${last} (${Math.floor(part * 100)} %), ${sent} event${sent === 1 ? '' : 's'} sent`;
}
