/** Messages to executions of flows, and how code outside a conductor sends them. */

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

/** How code outside a conductor reaches the conductors. */
export interface Conductors {
  /** Answers after the commit, or keeps the messages by `FlowEngine.accept` where no conductor takes them in time. */
  deliver(tenantId: string, messages: readonly FlowMessage[], withinMs: number): Promise<Delivered[]>;
  hint(tenantId: string, owners: readonly string[]): void;
}
