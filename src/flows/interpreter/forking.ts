/**
 * Begins an execution with the state of another one, as at some revision.
 *
 * 1. What was under way there is begun again under the new execution: tasks, calls and items of people. The original goes on by itself.
 * 2. Timers keep the moments at which they are due. What a node was closing for has ended.
 * 3. Live nodes at the given positions begin again, because their steps were replaced.
 */
import { guard, workEnded } from './node-life.ts';
import type { Run } from './run.ts';
import type { Fork } from './state.ts';
import { restartAt } from './swapping.ts';

export function fork(run: Run, { state, at = [] }: Fork): void {
  run.draft.adopt({ ...state, isPaused: false, seen: [] });
  restartAt(run, at);
  // the original has stopped or begun these, and this execution has not
  run.effects.length = 0;
  for (const [nid, node] of Object.entries(run.draft.nodes)) {
    if (run.todo.isEntering(nid)) continue;
    for (const [name, { generation, dueMs }] of Object.entries(node.timers ?? {}))
      run.effects.push({ kind: 'set_timer', name: `${nid}/${name}`, generation, dueMs });
    if (node.phase === 'close') workEnded(run, nid);
    else if (node.phase === 'run' && node.memory?.['isSent'] === true) beginAgain(run, nid, node.at);
  }
}

function beginAgain(run: Run, nid: string, at: string): void {
  guard(run, nid, () => {
    const step = run.stepAt(at);
    run.rules(step).execute(run, nid, step);
  });
}
