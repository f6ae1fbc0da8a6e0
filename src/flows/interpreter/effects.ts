/** What a run of the interpreter asks the world to do. Nothing of it happens before the commit. */
import type { Json, JsonObject } from '../json.ts';

export interface TaskCall {
  readonly nid: string;
  readonly attempt: number;
  readonly name: string;
  readonly input: Json;
  readonly work:
    | { readonly kind: 'hosted' }
    | {
        readonly kind: 'run';
        readonly runtime: string;
        readonly block: JsonObject;
        readonly queue: string | null;
        readonly pool: string | null;
        readonly priority: 'high' | 'normal' | 'low';
      }
    | { readonly kind: 'human'; readonly item: JsonObject };
}

export type Effect =
  | ({ readonly kind: 'task' } & TaskCall)
  /** The answer of this attempt is not wanted any more. */
  | { readonly kind: 'stop'; readonly nid: string; readonly attempt: number; readonly isKill: boolean }
  | { readonly kind: 'set_timer'; readonly name: string; readonly generation: number; readonly dueMs: number }
  | { readonly kind: 'clear_timer'; readonly name: string }
  /** Launches another flow. The node waits for the end of the execution; of a detached one, only for its launch. */
  | {
      readonly kind: 'launch';
      /** Of the new execution. */
      readonly id: string;
      readonly nid: string;
      readonly attempt: number;
      readonly isDetached: boolean;
      readonly flow: string;
      readonly input: Json;
    }
  | { readonly kind: 'signal'; readonly to: string; readonly name: string; readonly payload: Json };
