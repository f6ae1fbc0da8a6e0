/**
 * Lets the engine interpret the letters of a mailbox, one after the other, each on the result of the one before.
 *
 * 1. Nothing leaves the process here: results go into the next put.
 * 2. One message takes at most `budgetMs` or `maxMessages` inner messages; what is left follows after the commit.
 * 3. A message without any effect is put as well: the commit finds out whether the state was the newest. Another conductor may have
 *    driven the execution meanwhile, and a timer that is unknown here may be the one that it has set.
 */
import { makeAnswerToken } from '../flows/answer-token.ts';
import type { EngineContext } from '../contract/context.ts';
import type { Circumstances, Execution, FlowEngine, FlowRun } from '../contract/flows.ts';
import type { FlowMessage } from '../contract/flow-messages.ts';
import { checkpoint } from './checkpoints.ts';
import type { Item } from './commit-lanes.ts';
import type { Mailbox } from './mailbox.ts';

/** `budgetMs`: the longest time for which one message keeps other tenants waiting. 200 inner messages usually take 2 ms. */
const messageLimits = { budgetMs: 100, maxMessages: 200 } as const;

export interface InterpretingOptions {
  readonly engine: Pick<FlowEngine, 'execute'>;
  readonly ctx: EngineContext;
  /** The functions that this conductor calls. */
  readonly hosted: () => ReadonlySet<string>;
  /** The address of the API, for links. */
  readonly apiUrl: () => string;
}

export interface Interpreted extends Item {
  readonly bytes: number;
}

export class Interpreting {
  readonly #options: InterpretingOptions;

  constructor(options: InterpretingOptions) {
    this.#options = options;
  }

  /** Interprets at most `most` letters. The mailbox has its execution. */
  run(box: Mailbox, execution: Execution, most: number): Interpreted {
    const runs: FlowRun[] = [];
    let bytes = 0;
    let present = execution;
    for (const { message } of box.waiting.slice(0, most)) {
      const run = this.#interpret(present, message);
      runs.push(run);
      bytes += run.bytes ?? run.to.bytes;
      present = run.to;
      // what is left comes before other messages
      if (run.more) break;
    }
    return { box, runs, bytes };
  }

  #interpret(execution: Execution, message: FlowMessage): FlowRun {
    const run = this.#options.engine.execute(execution, message, this.#circumstances(execution, message));
    checkpoint('message.executed');
    return run;
  }

  #circumstances(execution: Execution, message: FlowMessage): Circumstances {
    const { ctx, hosted, apiUrl } = this.#options;
    const nowMs = ctx.time.now();
    const endMs = performance.now() + messageLimits.budgetMs;
    return {
      nowMs,
      seed: `${execution.id}/${execution.rev}/${message.id}`,
      maxMessages: messageLimits.maxMessages,
      hosted: hosted(),
      isSpent: () => performance.now() > endMs,
      link: (answer) =>
        `${apiUrl()}/answers/${makeAnswerToken(ctx.secrets, { ...answer, tenantId: ctx.tenant.id }, nowMs)}`,
    };
  }
}

/** Whether the run must be committed: only one that was to go on with work that is left, and found none, need not. */
export function needsPut({ from, to, message: { point } }: FlowRun, member: string): boolean {
  return to !== from || from.owner !== member || point !== 'continue';
}
