/**
 * Orders the nodes of each layer so that few edges cross: in a few sweeps, every node moves to the middle of its neighbours in
 * the layer before, then in the layer after. The best order found is kept.
 */
import { type Link, neighbours } from './layers.ts';

const sweeps = 12;
/** Sweeps without improvement before it stops. */
const patience = 4;

export interface Layering {
  readonly count: number;
  /** The layer of each node. */
  readonly layers: readonly number[];
  /** Each link leads from a layer to the next one. */
  readonly links: readonly Link[];
}

/** The nodes of each layer from top to bottom. */
export function orderLayers({ count, layers, links }: Layering): number[][] {
  const children = neighbours(count, links, 'from');
  const parents = neighbours(count, links, 'to');
  let rows = firstOrder(count, layers, children, parents);
  let best = rows;
  let fewest = crossings(rows, children, count);
  let idle = 0;
  for (let sweep = 0; sweep < sweeps && fewest > 0 && idle < patience; sweep++) {
    rows = swept(rows, sweep % 2 === 0 ? parents : children, sweep % 2 === 0, count);
    const crossed = crossings(rows, children, count);
    idle = crossed < fewest ? 0 : idle + 1;
    if (crossed < fewest) [best, fewest] = [rows, crossed];
  }
  return best;
}

/** The initial order, by a walk from the roots, so that related nodes start together. */
function firstOrder(
  count: number,
  layers: readonly number[],
  children: readonly number[][],
  parents: readonly number[][],
): number[][] {
  const rows: number[][] = Array.from({ length: Math.max(-1, ...layers) + 1 }, () => []);
  const seen = new Uint8Array(count);
  const roots = parents.flatMap((list, node) => (list.length === 0 ? [node] : []));
  const stack = roots.toReversed();
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen[node] === 1) continue;
    seen[node] = 1;
    rows[layers[node] ?? 0]?.push(node);
    for (const child of (children[node] ?? []).toReversed()) if (seen[child] === 0) stack.push(child);
  }
  return rows;
}

function placesOf(rows: readonly number[][], count: number): Int32Array {
  const places = new Int32Array(count);
  for (const row of rows) row.forEach((node, place) => (places[node] = place));
  return places;
}

function swept(rows: readonly number[][], joined: readonly number[][], rightwards: boolean, count: number): number[][] {
  const places = placesOf(rows, count);
  const next = rows.map((row) => [...row]);
  const wishes = new Float64Array(count);
  for (const row of rightwards ? next : next.toReversed()) {
    row.forEach((node, place) => (wishes[node] = middle(joined[node] ?? [], places) ?? place));
    row.sort((a, b) => (wishes[a] ?? 0) - (wishes[b] ?? 0));
    row.forEach((node, place) => (places[node] = place));
  }
  return next;
}

function middle(nodes: readonly number[], places: Int32Array): number | undefined {
  if (nodes.length === 0) return undefined;
  let sum = 0;
  for (const node of nodes) sum += places[node] ?? 0;
  return sum / nodes.length;
}

/** Pairs of links between neighbouring layers that cross, counted with a tree of partial sums. */
export function crossings(rows: readonly number[][], children: readonly number[][], count: number): number {
  const places = placesOf(rows, count);
  let crossed = 0;
  rows.forEach((row, layer) => {
    const tree = new Int32Array((rows[layer + 1]?.length ?? 0) + 1);
    let laid = 0;
    for (const node of row) {
      const ends = children[node] ?? [];
      for (const end of ends) {
        crossed += laid;
        for (let i = (places[end] ?? 0) + 1; i > 0; i -= i & -i) crossed -= tree[i] ?? 0;
      }
      for (const end of ends) {
        for (let i = (places[end] ?? 0) + 1; i < tree.length; i += i & -i) tree[i] = (tree[i] ?? 0) + 1;
      }
      laid += ends.length;
    }
  });
  return crossed;
}
