/** The launch of an execution that begins in the state of another one. */
import type { LaunchBody } from '../../contract/flow-messages.ts';
import type { JsonObject } from '../json.ts';
import type { StoredExecution } from './stored.ts';

export interface ForkChange {
  /** The revision of `stored`. */
  readonly rev: number;
  /** Fields to set in the fork. */
  readonly fields: JsonObject;
  /** Another document, with the positions of the steps that were replaced; null: that of the original. */
  readonly document: JsonObject | null;
  readonly at: readonly string[];
}

export function forkOf(
  { head, state, document: original }: StoredExecution,
  { rev, fields, document, at }: ForkChange,
): LaunchBody {
  return {
    point: 'launch',
    flow: head.flow,
    version: head.version,
    input: state.input,
    fork: {
      flowId: head.flowId,
      execution: head.id,
      rev,
      state: { ...state, f: { ...state.f, ...fields } },
      document: document ?? original,
      at,
    },
  };
}
