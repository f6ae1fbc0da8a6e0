/**
 * Messages from code of this process: those of clients, and answers of hosted functions. Each is answered after the commit that took
 * it. One that this conductor does not process in time is stored in the inbox, and answered as `accepted`.
 *
 * 1. An acknowledged message is durable: committed, or stored.
 * 2. Messages that are to be stored at the same moment are stored with one statement for each owner.
 */
import type { EngineContext } from '../contract/context.ts';
import type { Delivered, FlowMessage } from '../contract/flow-messages.ts';
import type { AcceptOutcome, FlowEngine } from '../contract/flows.ts';
import { isRowRejection, MillraceError } from '../errors.ts';
import { isolateRejected } from '../kernel/isolate-rejected.ts';
import type { Letter, LetterEnd } from './mailbox.ts';

export const deliveryLimits = {
  /** Letters in memory of one execution, and of a tenant. Further messages are stored. */
  ofExecution: 1_000,
  ofTenant: 20_000,
} as const;

export interface DeliveriesOptions {
  readonly engine: Pick<FlowEngine, 'accept'>;
  readonly ctx: EngineContext;
  /** Gives a letter to its mailbox. Returns whether there was room. */
  readonly post: (letter: Letter) => boolean;
  /** Takes back what still waits. Returns whether the letter did. */
  readonly withdraw: (letter: Letter) => boolean;
  /** Messages were stored for executions of these owners. */
  readonly onStored: (owners: readonly (string | null)[]) => void;
}

interface Stored {
  readonly message: FlowMessage;
  readonly owner: string | null;
  readonly settle: Settle;
}

interface Settle {
  readonly resolve: (delivered: Delivered) => void;
  readonly reject: (error: unknown) => void;
}

interface Pending {
  readonly letter: Letter;
  readonly store: (owner: string | null) => void;
}

export class Deliveries {
  readonly #options: DeliveriesOptions;
  readonly #pending = new Set<Pending>();
  #storing: Stored[] = [];
  readonly #writing = new Set<Promise<void>>();

  constructor(options: DeliveriesOptions) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#pending.size === 0 && this.#storing.length === 0 && this.#writing.size === 0;
  }

  /** Rejects if a message can be neither processed nor stored now. */
  async deliver(messages: readonly FlowMessage[], withinMs: number): Promise<Delivered[]> {
    const sent = messages.map((message) => this.#begin(message));
    const giveUp = setTimeout(() => {
      for (const { pending } of sent) this.#storeIfWaiting(pending);
    }, withinMs);
    try {
      return await Promise.all(sent.map(({ delivered }) => delivered));
    } finally {
      clearTimeout(giveUp);
    }
  }

  /** Stores all that has not begun. */
  storeAll(): void {
    for (const pending of this.#pending) this.#storeIfWaiting(pending);
  }

  /** As `deliver`, without a limit of time. */
  send(message: FlowMessage): Promise<Delivered> {
    return this.#begin(message).delivered;
  }

  /** Returns once all is stored that was to be stored. */
  async drain(): Promise<void> {
    await Promise.all(this.#writing);
  }

  #begin(message: FlowMessage): { readonly delivered: Promise<Delivered>; readonly pending: Pending } {
    const settle: Settle = { resolve: () => {}, reject: () => {} };
    const delivered = new Promise<Delivered>((resolve, reject) => Object.assign(settle, { resolve, reject }));
    const store = (owner: string | null): void => this.#store({ message, owner, settle });
    const end = (ended: LetterEnd): void => {
      this.#pending.delete(pending);
      if (ended.kind === 'left') store(ended.owner);
      else settle.resolve(deliveredOf(message, ended));
    };
    const pending: Pending = { letter: { message, end }, store };
    if (this.#options.post(pending.letter)) this.#pending.add(pending);
    else store(null);
    return { delivered, pending };
  }

  #storeIfWaiting(pending: Pending): void {
    if (!this.#pending.has(pending) || !this.#options.withdraw(pending.letter)) return;
    this.#pending.delete(pending);
    pending.store(null);
  }

  #store(stored: Stored): void {
    this.#storing.push(stored);
    if (this.#storing.length > 1) return;
    const writing = Promise.resolve().then(() => this.#storeGathered());
    this.#writing.add(writing);
    void writing.finally(() => this.#writing.delete(writing));
  }

  async #storeGathered(): Promise<void> {
    const gathered = this.#storing;
    this.#storing = [];
    const owners = [...new Set(gathered.map(({ owner }) => owner))];
    const of = (owner: string | null): Stored[] => gathered.filter((stored) => stored.owner === owner);
    await Promise.all(owners.map((owner) => this.#accept(owner, of(owner))));
    this.#options.onStored(owners);
  }

  async #accept(owner: string | null, stored: readonly Stored[]): Promise<void> {
    const { engine, ctx } = this.#options;
    const write = async (some: readonly Stored[]): Promise<void> => {
      const outcomes = await engine.accept(
        ctx,
        some.map(({ message }) => message),
        owner,
      );
      for (const [i, { message, settle }] of some.entries()) settle.resolve(acceptedOf(message, outcomes[i]));
    };
    try {
      const rejected = await isolateRejected(stored, write, { isRejection: isRowRejection });
      for (const [{ settle }, error] of rejected) settle.reject(error);
    } catch (error) {
      for (const { settle } of stored) settle.reject(error);
    }
  }
}

function deliveredOf({ id, execution }: FlowMessage, ended: Exclude<LetterEnd, { kind: 'left' }>): Delivered {
  switch (ended.kind) {
    case 'committed':
    case 'gone':
      return { id, execution, outcome: ended.kind };
    case 'known':
      return { id, execution: ended.execution, outcome: 'known' };
    case 'refused':
      return { id, execution, outcome: 'refused', code: ended.code, detail: ended.detail };
    default:
      return ended satisfies never;
  }
}

const storedDetail = 'it is stored, and takes effect once a conductor takes it';

export function acceptedOf({ id, execution }: FlowMessage, outcome: AcceptOutcome | undefined): Delivered {
  if (outcome === undefined) throw new MillraceError('internal', 'the engine returned no outcome for a message');
  switch (outcome.kind) {
    case 'accepted':
      return { id, execution, outcome: 'accepted', detail: storedDetail };
    case 'known':
      return { id, execution: outcome.execution, outcome: 'known' };
    case 'gone':
      return { id, execution, outcome: 'gone' };
    case 'refused':
      return { id, execution, outcome: 'refused', code: outcome.code, detail: outcome.detail };
    default:
      return outcome satisfies never;
  }
}
