/** The box that an arrow key leads to: the nearest in its direction, those straight ahead first. */
import { type LaidNode, nodeHeight } from './layout.ts';

const directions: Readonly<Record<string, readonly [dx: number, dy: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

export function steer(nodes: ReadonlyMap<string, LaidNode>, from: string, key: string): string | undefined {
  const [start, way] = [nodes.get(from), directions[key]];
  if (start === undefined || way === undefined) return undefined;
  let best: { readonly id: string; readonly cost: number } | undefined;
  for (const node of nodes.values()) {
    const cost = costOf(start, node, way);
    if (cost !== undefined && (best === undefined || cost < best.cost)) best = { id: node.id, cost };
  }
  return best?.id;
}

/** Undefined for a box that is not in that direction. Up and down stay within a layer. */
function costOf(from: LaidNode, to: LaidNode, [dx, dy]: readonly [number, number]): number | undefined {
  if (from === to) return undefined;
  const layers = (to.layer - from.layer) * dx;
  if (dx !== 0) return layers > 0 ? layers * 10 * nodeHeight + Math.abs(to.y - from.y) : undefined;
  const down = (to.y - from.y) * dy;
  return to.layer === from.layer && down > 0 ? down : undefined;
}
