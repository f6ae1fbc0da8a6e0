/** Messages to executions of flows, and the interface by which code outside a conductor sends them. */

export interface FlowMessage {
  /** The client's, or made from the subject: of answers the node and attempt, of timers the name and generation. */
  readonly id: string;
  readonly execution: string;
  readonly bornMs: number;
  readonly point: 'launch' | 'answer' | 'timer' | 'signal' | 'operate' | 'continue';
  /** Who sent it; null: a machine. */
  readonly actor: string | null;
  /** As the engine's `MessageBody`; of a launch, `LaunchBody`. Only engines read it. */
  readonly body: unknown;
}

/** The body of a launch. The id of the execution is chosen by the sender. */
export interface LaunchBody {
  readonly point: 'launch';
  readonly flow: string;
  /** Undefined: the newest. */
  readonly version?: number;
  readonly input: unknown;
  /** A launch with a key that an execution has already is answered with that execution. */
  readonly key?: string;
  /** The node that waits for its end. */
  readonly parent?: { readonly execution: string; readonly nid: string; readonly attempt: number };
  /** How many executions called each other until this one. */
  readonly depth?: number;
  /** Begins in the state of another execution. `input` is that of the other one. */
  readonly fork?: Forked;
}

export interface Forked {
  readonly flowId: string;
  readonly execution: string;
  readonly rev: number;
  readonly state: unknown;
  /** The document that it follows. */
  readonly document: unknown;
  /** Positions of steps that were replaced in it. */
  readonly at: readonly string[];
}

export interface Delivered {
  /** Of the message. */
  readonly id: string;
  /**
   * - `committed`: it has had its effect.
   * - `accepted`: it is stored, and takes effect when a conductor takes it.
   * - `known`: the message, or the key of the launch, came before. Nothing has changed.
   * - `refused`: it has no effect, and will have none; `code` and `detail` say why.
   * - `gone`: there is no such execution.
   */
  readonly outcome: 'committed' | 'accepted' | 'known' | 'refused' | 'gone';
  /** With `known`: the execution that has the key. */
  readonly execution: string;
  readonly code?: string;
  readonly detail?: string;
}

/** The interface by which code outside a conductor reaches the conductors. */
export interface Conductors {
  /**
   * Resolves after the commit, with one outcome for each message, in order. If no conductor takes the messages in time, stores
   * them by `FlowEngine.accept`.
   */
  deliver(tenantId: string, messages: readonly FlowMessage[], withinMs: number): Promise<Delivered[]>;
  /** Messages were stored for executions of these owners. Null stands for any owner. */
  hint(tenantId: string, owners: readonly (string | null)[]): void;
}
