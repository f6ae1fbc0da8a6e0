/**
 * Writes flows in TypeScript. The only product is the JSON of a document: nothing of the code runs when the flow is executed.
 *
 *     const order = flow<Order>('order', ({ f }) => [s.task(charge, { amount: f.total }).result(f.payment)]);
 *     JSON.stringify(order);
 */
import { type Expr, path, type Path } from './paths.ts';
import type { ErrorSteps, FlowErrorFacts, RetryOptions, Step } from './steps.ts';

export interface FlowScope<F> {
  /** The fields of the execution. */
  readonly f: Path<F>;
  /** What it was launched with. */
  readonly input: Path<F>;
  readonly v: Path<Readonly<Record<string, never>>> & Readonly<Record<string, Path<never>>>;
  readonly err: Path<FlowErrorFacts>;
}

export interface FlowOptions {
  readonly description?: string;
  readonly project?: string;
  readonly labels?: Readonly<Record<string, Expr<unknown> | string>>;
  readonly timeout?: string;
  readonly defaults?: { readonly retry?: RetryOptions; readonly timeout?: string };
  readonly sealed?: readonly Expr<unknown>[];
  readonly onError?: ErrorSteps;
  readonly onCancel?: readonly Step[];
  readonly onTimeout?: readonly Step[];
}

/** A document. `JSON.stringify` writes it. */
export interface FlowDocument {
  readonly flow: string;
  readonly steps: readonly unknown[];
}

export function flow<F extends object = Readonly<Record<string, unknown>>>(
  name: string,
  build: (scope: FlowScope<F>) => readonly Step[],
  { onError, onCancel, onTimeout, sealed, ...more }: FlowOptions = {},
): FlowDocument {
  const err = path<FlowErrorFacts>('err');
  const scope = { f: path<F>('f'), input: path<F>('input'), v: path('v'), err } as unknown as FlowScope<F>;
  const document = {
    flow: name,
    ...more,
    ...(sealed !== undefined && { sealed: sealed.map(withoutMark) }),
    steps: build(scope),
    ...(onError !== undefined && { on_error: [{ do: onError({ err }) }] }),
    ...(onCancel !== undefined && { on_cancel: onCancel }),
    ...(onTimeout !== undefined && { on_timeout: onTimeout }),
  };
  // paths and steps become text here, so that the document is plain JSON from now on
  return JSON.parse(JSON.stringify(document)) as FlowDocument;
}

/** `f.card` instead of `$(f.card)`. */
function withoutMark(field: Expr<unknown>): string {
  return field.toJSON().slice(2, -1);
}
