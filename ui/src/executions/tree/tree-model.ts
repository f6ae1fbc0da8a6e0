/** The parts of an execution that its drawing needs: the steps of its document, and the live nodes that visit them. */

type StepState = 'done' | 'running' | 'waiting' | 'incident' | 'failed' | 'cancelled' | 'skipped' | 'idle';

/** A step of the document, with the steps inside it. */
export interface TreeStep {
  /** The position in the tree: `0_1`. */
  readonly at: string;
  /** The place in the document: `steps[0].then[1]`. */
  readonly path: string;
  readonly verb: string;
  readonly title: string;
  readonly tag: string | null;
  /** The part of the step around it: `then`, `do`, `on_error`, … */
  readonly branch: string | null;
  readonly state: StepState;
  readonly children: readonly TreeStep[];
}

/** A live visit of a step. */
export interface TreeNode {
  readonly id: string;
  readonly at: string;
  readonly parent: string | null;
  readonly phase: 'run' | 'backoff' | 'close' | 'undo' | 'handle' | 'incident';
  readonly attempt: number;
  readonly waits: { readonly kind: string } | null;
}

/** The state of a row: of a step that nothing visits, or of one visit. */
export type RowState = StepState | 'retry' | 'closing' | 'undoing' | 'handling';

const waitingKinds: ReadonlySet<string> = new Set(['timer', 'signal', 'human', 'child']);

const byPhase = {
  backoff: 'retry',
  close: 'closing',
  undo: 'undoing',
  handle: 'handling',
  incident: 'incident',
} as const;

/** The state of a visit by itself. A block that waits for its steps counts as running. */
export function stateOfNode({ phase, waits }: Pick<TreeNode, 'phase' | 'waits'>): RowState {
  if (phase !== 'run') return byPhase[phase];
  return waits !== null && waitingKinds.has(waits.kind) ? 'waiting' : 'running';
}
