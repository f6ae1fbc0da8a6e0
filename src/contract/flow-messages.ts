/** Messages to executions of flows, and the interface by which code outside a conductor sends them. */

export interface FlowMessage {
  readonly id: string;
  readonly execution: string;
  readonly bornMs: number;
  readonly point: 'launch' | 'answer' | 'timer' | 'signal' | 'event' | 'operate' | 'continue';
  readonly body: unknown;
}

interface Delivered {
  readonly id: string;
  readonly outcome: 'committed' | 'accepted' | 'known' | 'refused' | 'gone';
  readonly execution: string;
  readonly code?: string;
  readonly detail?: string;
}

/** The interface by which code outside a conductor reaches the conductors. */
export interface Conductors {
  /** Resolves after the commit. If no conductor takes the messages in time, stores them by `FlowEngine.accept`. */
  deliver(tenantId: string, messages: readonly FlowMessage[], withinMs: number): Promise<Delivered[]>;
  hint(tenantId: string, owners: readonly string[]): void;
}
