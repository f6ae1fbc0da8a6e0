/** A lane is the set of runs that the same workers may claim: those of one runtime and one queue. */
export const defaultQueue = 'default';

export function runtimeOf(lane: string): string {
  return lane.slice(0, lane.indexOf(':'));
}

export function laneOf(runtime: string, queue: string): string {
  return `${runtime}:${queue}`;
}
