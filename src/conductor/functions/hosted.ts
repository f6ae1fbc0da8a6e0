/** Functions that a conductor hosts: called for tasks of flows, and answered by their result. */
import type { HostedCall } from '../../contract/flows.ts';
import type { Service } from '../../kernel/service.ts';

/** As the answer of a task has it. */
export type CallOutcome =
  | { readonly kind: 'done'; readonly result: unknown }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string; readonly data: unknown }
  | { readonly kind: 'cancelled' };

export interface CallCircumstances {
  /** The name of the tenant. */
  readonly tenant: string;
  /** Stops when the answer is not wanted any more. */
  readonly stop: CallStop;
}

/** Asks one call to stop. Its signal is made when a function asks for it: most never do, and signals are dear. */
export class CallStop {
  readonly #controller = new AbortController();
  #isStopped = false;
  #onStop = (): void => {};

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Whoever makes the call may listen. */
  set onStop(listener: () => void) {
    this.#onStop = listener;
  }

  stop(reason: string): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#controller.abort(reason);
    this.#onStop();
  }
}

export interface HostedFunctions {
  readonly names: ReadonlySet<string>;
  /** Never rejects. */
  call(call: HostedCall, how: CallCircumstances): Promise<CallOutcome>;
  /** Must run before the first call. */
  readonly service?: Service;
}

/** The code of failures that name none. */
export const usualCode = 'error';

export function failedCall(code: string, message: string): CallOutcome {
  return { kind: 'failed', code, message, data: null };
}

export const noFunctions: HostedFunctions = {
  names: new Set(),
  call: async ({ name }) => failedCall(usualCode, `this conductor does not host the function "${name}"`),
};
