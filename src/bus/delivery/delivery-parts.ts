/** The parts that a delivery needs. All strands of a tenant in one courier share them. */
import type { Log } from '../../kernel/log.ts';
import type { Time } from '../../kernel/time.ts';
import type { BusEvent, BusStore, CutShort, Done, DoneResult, Failed } from '../store.ts';
import type { GroupedWrites } from './grouped-writes.ts';
import type { Sender } from './sender.ts';
import type { Revision } from './subscriptions.ts';
import type { Tail } from './tail.ts';

export interface DeliveryParts {
  readonly store: BusStore;
  readonly tail: Tail;
  readonly sender: Sender;
  readonly acks: GroupedWrites<Done, DoneResult | undefined>;
  readonly failures: GroupedWrites<Failed, boolean>;
  readonly cuts: GroupedWrites<CutShort, boolean>;
  readonly time: Time;
  readonly random: () => number;
  readonly log: Log;
  /** The default of `max_age`. */
  readonly giveUpMs: number;
  /** An errand that this courier has put back is due then. */
  readonly onPutBack: (runAtMs: number) => void;
  readonly onGivenUp: (receiver: string, events: number) => void;
}

/** A batch as it was gathered. */
export interface Gathered {
  readonly events: readonly BusEvent[];
  readonly bytes: number;
  /** The revision of its first event. */
  readonly revision: Revision;
  /** Whether nothing but the log decided where it ends. */
  readonly isClosed: boolean;
  /** When the event after it was accepted, if it is known. */
  readonly nextAtMs: number | null;
}
