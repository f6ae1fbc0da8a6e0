/**
 * Waits until an execution has ended, and shows meanwhile what happens: on a terminal its tree, redrawn with every change; else a line
 * for each commit.
 */
import { delayMs } from '../../../kernel/backoff.ts';
import { pause } from '../../../kernel/service.ts';
import { makeLiveDrawing } from '../../print/live-drawing.ts';
import { makePaint } from '../../print/paint.ts';
import type { Sink } from '../../session/io.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';
import { isTransient, patienceMs } from '../runs/follow-runs.ts';
import { type Execution, fetchExecution, isOver, renderExecution } from './execution.ts';
import { readHistory, renderEntry } from './history.ts';

interface Following {
  readonly id: string;
  /** The tree is drawn there if it is a terminal. */
  readonly sink: Sink;
  /** Whether an execution that only a person can bring on counts as ended. */
  readonly stopsAtIncident: boolean;
  /** Instead of the drawing, for programs. */
  readonly onChange?: ((execution: Execution) => void) | undefined;
}

const polling = { firstMs: 100, capMs: 1_000, jitter: 0 };

/** Returns the execution as it is then. */
export async function followExecution(session: Session, server: Server, following: Following): Promise<Execution> {
  const show = makeView(session, server, following);
  let rev = -1;
  let answeredAt = Date.now();
  for (let attempt = 0; ; attempt++) {
    session.signal.throwIfAborted();
    try {
      const execution = await fetchExecution(server, following.id);
      answeredAt = Date.now();
      await show(execution, execution.rev !== rev);
      if (execution.rev !== rev) attempt = 0;
      rev = execution.rev;
      if (isOver(execution) || (following.stopsAtIncident && isStuck(execution))) return execution;
    } catch (error) {
      if (!isTransient(error) || Date.now() - answeredAt > patienceMs) throw error;
    }
    await pause(delayMs(polling, attempt), session.signal);
  }
}

/** Whether an incident is all that is left to do. Other branches may still be at work. */
function isStuck({ status, is_busy: isBusy, nodes }: Execution): boolean {
  if (status !== 'incident' || isBusy) return false;
  return nodes.every(({ waits }) => waits?.kind === 'incident' || waits?.kind === 'steps');
}

type View = (execution: Execution, isNew: boolean) => Promise<void> | void;

function makeView(session: Session, server: Server, { id, sink, onChange }: Following): View {
  if (onChange !== undefined) return (execution, isNew) => void (isNew && onChange(execution));
  if (sink.isTTY !== true) return makeLineView(session, server, id);
  const drawing = makeLiveDrawing(sink);
  const out = { ...session.out, paint: makePaint(sink, session.io.env) };
  // times are redrawn, even if nothing has changed
  return (execution) => {
    const limits = { nowMs: Date.now(), width: sink.columns };
    const others = renderExecution({ ...execution, tree: { ...execution.tree, children: [] } }, out, limits).length;
    const maxRows = Math.max(3, drawing.maxLines() - others + 1);
    drawing.draw(renderExecution(execution, out, { ...limits, maxRows }));
  };
}

function makeLineView(session: Session, server: Server, id: string): View {
  let last = 0;
  return async ({ rev }, isNew) => {
    if (!isNew || rev <= last) return;
    for await (const entry of readHistory(server, id, last)) {
      session.out.note(renderEntry(entry, { paint: (_, text) => text }));
      last = entry.rev;
    }
  };
}
