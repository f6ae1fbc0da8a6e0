/**
 * Plans a change of an execution: the fields to set, and the document in which steps are replaced. The document is checked as a whole,
 * as when a flow is applied. Nothing is written.
 */
import { documentParser } from '../../../documents/parser.ts';
import { type Fault, MillraceError } from '../../../errors.ts';
import { parseFlowDocument } from '../../../flows/definitions/parse-request.ts';
import { type Swap, swapSteps } from '../../../flows/definitions/swap-steps.ts';
import type { StoredExecution } from '../../../flows/executions/stored.ts';
import type { Json, JsonObject } from '../../../flows/json.ts';
import { formatPath } from '../../../kernel/text/path.ts';
import { type ApiContext, badRequest } from '../../context.ts';
import { badDocument, rejectLocalTasks } from '../../flows/document-faults.ts';
import { requireSmall } from '../value-size.ts';

export interface Wish {
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
  readonly swap?: Readonly<Record<string, readonly unknown[]>> | undefined;
}

export interface PlannedChange {
  readonly fields: JsonObject;
  /** Undefined: no step is replaced. */
  readonly swap: { readonly document: JsonObject; readonly at: readonly string[] } | undefined;
}

export async function planChange(
  ctx: ApiContext,
  stored: StoredExecution,
  wish: Wish,
  signal: AbortSignal,
): Promise<PlannedChange> {
  const fields = Object.fromEntries(
    Object.entries(wish.fields ?? {}).map(([name, value]) => {
      if (!fieldName.test(name)) throw badRequest(formatPath(['body', 'fields', name]), 'is not the name of a field');
      return [name, requireSmall(value, formatPath(['body', 'fields', name]))];
    }),
  );
  const swaps = Object.entries(wish.swap ?? {});
  if (swaps.length === 0) return { fields, swap: undefined };
  return { fields, swap: await planSwap(ctx, stored, swaps, signal) };
}

const fieldName = /^[A-Za-z_][\w-]{0,199}$/;

async function planSwap(
  ctx: ApiContext,
  { flow, document, state }: StoredExecution,
  wished: readonly (readonly [key: string, steps: readonly unknown[]])[],
  signal: AbortSignal,
): Promise<NonNullable<PlannedChange['swap']>> {
  const swaps = wished.map(([key, steps]) => toSwap({ flow, state }, key, steps as readonly Json[]));
  const swapped = swapSteps(flow, document, swaps);
  if (!swapped.ok) throw badDocument(swapped.faults);
  const text = JSON.stringify(swapped.document);
  if (text.length > maxDocumentChars)
    throw badRequest('body.swap', `makes a document of more than ${maxDocumentChars} characters`);
  const parsed = await parseFlowDocument(documentParser, { text, format: 'json', tenant: ctx.tenant.id, signal });
  if (!parsed.ok) throw badDocument(parsed.faults);
  rejectLocalTasks(parsed.definition, ctx);
  const byPath = new Map([...flow.byPosition.values()].map(({ path, at }) => [path, at]));
  return { document: swapped.document, at: swaps.map(({ path }) => byPath.get(path) ?? '') };
}

/** As of documents that are applied. */
const maxDocumentChars = 1024 * 1024;

/** A key is the id of a live node, or a place in the document. */
function toSwap({ flow, state }: Pick<StoredExecution, 'flow' | 'state'>, key: string, steps: readonly Json[]): Swap {
  if (!/^0(?:_|-)[\w-]*$/.test(key)) return { key, path: key, steps };
  const node = Object.hasOwn(state.nodes, key) ? state.nodes[key] : undefined;
  const path = node && flow.byPosition.get(node.at)?.path;
  if (path !== undefined) return { key, path, steps };
  const fault: Fault = { path: formatPath(['body', 'swap', key]), message: `there is no live node ${key}` };
  throw new MillraceError('not_found', fault.message, { faults: [fault] });
}
