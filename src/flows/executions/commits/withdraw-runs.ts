/**
 * Runs of workers that one message of a put begins and a later one stops are never queued: the database stops runs before it queues
 * others. A node that waits for the end of its run gets the answer `cancelled`, as if both had come from one message.
 */
import type { FlowRun } from '../../../contract/flows.ts';
import { isAtWork, memoryOf } from '../memory.ts';
import { answerId } from '../revisions/effects-of-run.ts';
import type { Attempt, RunDetails, Sent } from '../revisions/run-details.ts';

/** What one message of an execution does; the messages are in their order. */
interface Piece {
  readonly run: FlowRun;
  readonly details: RunDetails;
}

export function withdrawRuns<P extends Piece>(pieces: readonly P[]): readonly P[] {
  const stopped = new Set(pieces.flatMap(({ details }) => details.stoppedRuns.map(keyOf)));
  const withdrawn = new Set(pieces.flatMap(({ details }) => details.runs.map(keyOf).filter((key) => stopped.has(key))));
  if (withdrawn.size === 0) return pieces;
  const isLeft = (attempt: Attempt): boolean => !withdrawn.has(keyOf(attempt));
  return pieces.map((piece) => {
    const { runs, stoppedRuns, messages } = piece.details;
    const answers = stoppedRuns.filter((attempt) => !isLeft(attempt)).flatMap((attempt) => answerTo(pieces, attempt));
    const details = {
      ...piece.details,
      runs: runs.filter(isLeft),
      stoppedRuns: stoppedRuns.filter(isLeft),
      messages: [...messages, ...answers],
    };
    return { ...piece, details };
  });
}

function keyOf({ nid, attempt }: Attempt): string {
  return `${nid}/${attempt}`;
}

function answerTo(pieces: readonly Piece[], { nid, attempt }: Attempt): Sent[] {
  const last = pieces.at(-1)?.run.to;
  const node = last === undefined ? undefined : memoryOf(last).state.nodes[nid];
  if (last === undefined || node?.phase !== 'close' || !isAtWork(node)) return [];
  const body = { point: 'answer', nid, attempt, outcome: { kind: 'cancelled' } };
  return [{ execution: last.id, id: answerId({ nid, attempt }), point: 'answer', body }];
}
