/**
 * Replays what was not delivered: the dead letters inside a range, the oldest first, each under the id of its batch. An accepted
 * letter is deleted in the commit that moves the replay on. A letter that is refused again stays, and the next one follows.
 */
import type { OutboundAnswer } from '../../contract/bus.ts';
import type { Db } from '../../kernel/sql.ts';
import { checkpoint } from '../checkpoints.ts';
import type { Sender } from '../delivery/sender.ts';
import type { ReplayVerdict } from './judge-replay.ts';
import { type LoadedReplay, nextLetter, type ReplayStep } from './queries.ts';

export class LetterReplay {
  readonly #sender: Sender;
  readonly #db: Db;
  readonly #replay: string;

  constructor(sender: Sender, db: Db, replay: string) {
    this.#sender = sender;
    this.#db = db;
    this.#replay = replay;
  }

  /** Sends the next letter. Undefined: the signal aborted before an answer came. */
  async next(
    { subscriber, receiver, pos, to, attempts }: LoadedReplay,
    abort: AbortSignal,
    judge: (answer: OutboundAnswer) => ReplayVerdict,
  ): Promise<ReplayStep | undefined> {
    const letter = await nextLetter(this.#db, subscriber, { after: pos, to });
    if (letter === undefined) return { from: pos, to, state: 'done' };
    const { id, batch, first, events, body } = letter;
    const bytes = Buffer.byteLength(body);
    const sending = { id: batch, subscriber, body, count: events, bytes, attempt: attempts + 1, replay: this.#replay };
    const answer = await this.#sender.send(receiver, sending, abort);
    checkpoint('replay.letter');
    if (answer === undefined) return undefined;
    const verdict = judge(answer);
    switch (verdict.kind) {
      case 'done':
        // another letter may begin with the same event
        return { from: pos, to: Math.max(pos, first - 1), sent: events, accepted: id };
      case 'settle':
        return verdict.step;
      case 'halve':
      case 'skip':
      case 'tryNext':
      default:
        return { from: pos, to: first };
    }
  }
}
