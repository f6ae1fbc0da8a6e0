/** `loop`, and the verbs that leave a loop or an `each`: `break`, `continue`. */
import type { BreakStep, LoopStep } from '../../language/step.ts';
import { lineage } from '../fields.ts';
import { type Run, StepFailure, type VerbRules } from '../run.ts';

export const loop: VerbRules<LoopStep> = {
  execute: (run, nid, step) => startRound(run, nid, step),
  ended(run, nid, step) {
    const { leaving } = run.memory(nid);
    run.remember(nid, { leaving: null });
    if (leaving === 'break') run.complete(nid);
    else if (leaving !== 'continue' && step.until !== null && run.holds(nid, step.until)) run.complete(nid);
    else if (step.every === null) startRound(run, nid, step);
    else run.arm(nid, 'pause', run.nowMs + run.evaluateDuration(nid, step.every));
  },
  ticked: (run, nid, step) => startRound(run, nid, step),
};

function startRound(run: Run, nid: string, { body, while: test, max }: LoopStep): void {
  if (test !== null && !run.holds(nid, test)) {
    run.complete(nid);
    return;
  }
  const round = Number(run.memory(nid)['round'] ?? 0);
  if (round >= max) throw new StepFailure('loop_limit', `the loop has not ended after ${max} rounds`);
  run.remember(nid, { round: round + 1 });
  run.start(nid, body.at);
}

/** The way out is closed from the loop's body down to the step that leaves; the loop goes on when its body has ended. */
export const leave: VerbRules<BreakStep> = {
  execute(run, nid, { verb, of }) {
    const path: string[] = [];
    for (const [at, node] of lineage(run.draft, nid)) {
      const step = run.flow.byPosition.get(node.at);
      const isLoop = step?.verb === 'loop' || step?.verb === 'each';
      const body = path.at(-1);
      if (isLoop && body !== undefined && (of === null || step.tag === of)) {
        // another item of an `each` may leave at the same time: a break counts
        if (run.memory(at)['leaving'] !== 'break') run.remember(at, { leaving: verb });
        run.close(body, { kind: 'left', path });
        return;
      }
      path.push(at);
    }
    throw new StepFailure('no_loop', `there is no loop to ${verb}`);
  },
};
