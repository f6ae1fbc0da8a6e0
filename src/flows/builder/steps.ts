/** Steps of the builder: each is immutable, and becomes the JSON of a document. */
import { type Expr, type Given, path, type Path, sourceText } from './paths.ts';

export interface RetryOptions {
  readonly max_attempts: number;
  readonly delay?: string;
  readonly factor?: number;
  readonly cap?: string;
  readonly jitter?: number;
  readonly on?: readonly string[];
}

/** An error as handlers see it. */
export interface FlowErrorFacts {
  readonly code: string;
  readonly message: string;
  readonly data: unknown;
  readonly node: string;
}

export interface FlowEvent<P = unknown> {
  readonly name: string;
  readonly payload: P;
  readonly planned_at: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** A condition: an expression, or a constant. */
type Condition = Expr<boolean> | boolean;
type Duration = string | Expr<string>;

/** A step whose result has the type `Out`. */
export class Step<Out = unknown> {
  readonly #fields: Fields;

  constructor(fields: Fields) {
    this.#fields = fields;
  }

  toJSON(): Fields {
    return this.#fields;
  }

  #with(more: Fields): Step<Out> {
    return new Step({ ...this.#fields, ...more });
  }

  tag(tag: string): Step<Out> {
    return this.#with({ tag });
  }

  when(when: Condition): Step<Out> {
    return this.#with({ when });
  }

  /** With steps, these follow instead of the error `timeout`. */
  timeout(timeout: Duration, onTimeout?: readonly Step[]): Step<Out> {
    return this.#with({ timeout, ...(onTimeout !== undefined && { on_timeout: onTimeout }) });
  }

  retry(retry: RetryOptions): Step<Out> {
    return this.#with({ retry });
  }

  /** `match`: the codes of errors that these steps handle; without it all others. */
  onError(steps: ErrorSteps, match?: string | readonly string[]): Step<Out> {
    const before = (this.#fields['on_error'] ?? []) as readonly unknown[];
    const handler = { ...(match !== undefined && { match }), do: steps({ err: path<FlowErrorFacts>('err') }) };
    return this.#with({ on_error: [...before, handler] });
  }

  onCancel(steps: readonly Step[]): Step<Out> {
    return this.#with({ on_cancel: steps });
  }

  undo(steps: readonly Step[]): Step<Out> {
    return this.#with({ undo: steps });
  }

  /** Keeps the result at a path of `f` or `v`. */
  result(to: Expr<Out>): Step<Out> {
    return this.#with({ result: sourceText(to) });
  }

  vars(vars: Readonly<Record<string, unknown>>): Step<Out> {
    return this.#with({ vars });
  }

  background(): Step<Out> {
    return this.#with({ background: true });
  }
}

export type ErrorSteps = (scope: { readonly err: Path<FlowErrorFacts> }) => readonly Step[];

/** What runs a task, as in job documents: `{process: {…}}`, `{http: {…}}`, `{human: {…}}`. */
export type RuntimeBlock = Readonly<Partial<Record<'process' | 'docker' | 'function' | 'http' | 'human', unknown>>>;

/** A task with the types of its input and result. */
export interface Participant<In, Out> {
  readonly name: string;
  readonly runtime: RuntimeBlock;
  readonly types?: { readonly input: In; readonly output: Out };
}

/** Without a runtime, it is a function that a conductor hosts under this name. */
export function participant<In = unknown, Out = unknown>(
  name: string,
  runtime: RuntimeBlock = {},
): Participant<In, Out> {
  return { name, runtime };
}

export interface EventOptions {
  readonly signal?: string;
  readonly match?: Condition;
  readonly entered?: string;
  readonly left?: string;
  readonly every?: Duration;
  readonly cron?: string;
  readonly timezone?: string;
  readonly missed?: 'skip' | 'one' | 'all';
}

type Merge = 'first' | 'last' | 'ignore';

/** All steps. Options have the names of the document's fields. */
export const s = {
  sequence: (steps: readonly Step[]): Step => new Step({ sequence: steps }),

  parallel: (
    branches: readonly Step[],
    options: {
      readonly expect?: number;
      readonly rest?: 'cancel' | 'wait';
      readonly merge?: Merge;
      readonly concurrent?: number;
    } = {},
  ): Step<readonly unknown[]> => new Step({ parallel: branches, ...options }),

  if: (condition: Condition, yes: readonly Step[], no?: readonly Step[]): Step =>
    new Step(Object.assign({ if: condition }, { then: yes }, no === undefined ? {} : { else: no })),

  switch: (value: Expr<unknown>, cases: Readonly<Record<string, readonly Step[]>>, otherwise?: readonly Step[]): Step =>
    new Step({ switch: value, cases, ...(otherwise !== undefined && { else: otherwise }) }),

  loop: (
    steps: readonly Step[],
    options: {
      readonly while?: Condition;
      readonly until?: Condition;
      readonly every?: Duration;
      readonly max?: number;
    } = {},
  ): Step => new Step({ loop: steps, ...options }),

  each: <Item>(
    items: Expr<readonly Item[]> | readonly Item[],
    body: (scope: {
      readonly it: Path<Item>;
      readonly index: Path<number>;
      readonly key: Path<string>;
    }) => readonly Step[],
    options: { readonly concurrent?: number; readonly merge?: Merge } = {},
  ): Step<readonly unknown[]> =>
    new Step({
      each: items,
      do: body({ it: path<Item>('it'), index: path<number>('index'), key: path<string>('key') }),
      ...options,
    }),

  task: <In, Out>(
    task: Participant<In, Out>,
    ...[input, options = {}]: unknown extends In
      ? [input?: Given<In>, options?: TaskOptions]
      : [input: Given<In>, options?: TaskOptions]
  ): Step<Out> =>
    new Step({ task: task.name, ...task.runtime, ...(input !== undefined && { with: input }), ...options }),

  call: <Out = unknown>(
    flow: string,
    input?: unknown,
    options: { readonly mode?: 'child' | 'detached' } = {},
  ): Step<Out> => new Step({ call: flow, ...(input !== undefined && { with: input }), ...options }),

  wait: (
    time:
      | Duration
      | { readonly for?: Duration; readonly until?: Duration; readonly on?: EventOptions | readonly EventOptions[] },
  ): Step => new Step({ wait: time }),

  on: <P = unknown>(
    event: EventOptions,
    body: (scope: { readonly event: Path<FlowEvent<P>> }) => readonly Step[],
    options: { readonly count?: number; readonly mode?: 'queue' | 'parallel' } = {},
  ): Step => new Step({ on: event, do: body({ event: path<FlowEvent<P>>('event') }), ...options }),

  signal: (name: string, options: { readonly to?: string | Expr<string>; readonly payload?: unknown } = {}): Step =>
    new Step({ signal: name, ...options }),

  set: <T>(to: Expr<T>, value: Given<T>): Step => new Step({ set: { [sourceText(to)]: value } }),

  fail: (
    error: string | Expr<unknown> | { readonly code: string; readonly message?: unknown; readonly data?: unknown },
  ): Step => new Step({ fail: error }),

  cancel: (tag: string, options: { readonly kill?: boolean } = {}): Step => new Step({ cancel: tag, ...options }),

  break: (tag?: string): Step => new Step({ break: tag ?? true }),

  continue: (tag?: string): Step => new Step({ continue: tag ?? true }),
} as const;

export interface TaskOptions {
  readonly queue?: string;
  readonly pool?: string;
  readonly priority?: 'high' | 'normal' | 'low';
}
