/**
 * A lane: the runs that the same workers may take, namely those of one runtime and one queue. Runs of nodes have lanes of
 * their own, which workers of an older release do not ask for.
 */
import type { Places } from './wire.ts';

export const defaultQueue = 'default';

const ofNodes = 'node/';
/** The first wire number whose workers take runs of nodes. */
const nodeWire = 2;

export function laneOf(runtime: string, queue: string): string {
  return `${runtime}:${queue}`;
}

export function nodeLaneOf(runtime: string, queue: string): string {
  return ofNodes + laneOf(runtime, queue);
}

/** Neither name holds a colon. */
export function partsOfLane(lane: string): { readonly runtime: string; readonly queue: string } {
  const from = lane.startsWith(ofNodes) ? ofNodes.length : 0;
  const colon = lane.indexOf(':');
  return { runtime: lane.slice(from, colon), queue: lane.slice(colon + 1) };
}

export function runtimeOf(lane: string): string {
  return partsOfLane(lane).runtime;
}

/** The lanes that a worker serves. A node always executes something, so none has the runtime `none`. */
export function lanesOf({ runtimes, queues, wire = 1 }: Omit<Places, 'free'>): string[] {
  const lanes = (names: readonly string[], lane: typeof laneOf): string[] =>
    names.flatMap((runtime) => queues.map((queue) => lane(runtime, queue)));
  const ofTasks = lanes(runtimes, laneOf);
  if (wire < nodeWire) return ofTasks;
  return [
    ...ofTasks,
    ...lanes(
      runtimes.filter((runtime) => runtime !== 'none'),
      nodeLaneOf,
    ),
  ];
}
