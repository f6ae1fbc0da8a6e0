/**
 * The vertical position of each node: as near to its neighbours in other layers as the order of its own layer allows, with room
 * between nodes. Sweeps go in both directions, so that straight paths become straight lines.
 */
const sweeps = 8;

export interface Standing {
  /** The nodes of each layer from top to bottom. */
  readonly rows: readonly (readonly number[])[];
  readonly children: readonly (readonly number[])[];
  readonly parents: readonly (readonly number[])[];
  /** The height that each node needs, the room to its neighbours included. */
  readonly room: readonly number[];
  /** How strongly a node is kept in a straight line: bends of a long edge more than nodes. */
  readonly weight: readonly number[];
}

/** The middle of each node, from zero downwards. */
export function placeNodes({ rows, children, parents, room, weight }: Standing): number[] {
  const middles = room.map(() => 0);
  const layers = rows.map((row) => ({ row, weights: weightsOf(row, weight), gaps: gapsOf(row, room) }));
  for (const { row, weights, gaps } of layers) {
    const wishes = row.map(() => 0);
    set(middles, row, settle(wishes, weights, gaps));
  }
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const rightwards = sweep % 2 === 0;
    const joined = rightwards ? parents : children;
    for (const { row, weights, gaps } of rightwards ? layers : layers.toReversed()) {
      const wishes = row.map((node) => median(joined[node] ?? [], middles) ?? middles[node] ?? 0);
      set(middles, row, settle(wishes, weights, gaps));
    }
  }
  const top = rows.flat().reduce((least, node) => Math.min(least, (middles[node] ?? 0) - (room[node] ?? 0) / 2), 0);
  return middles.map((middle) => middle - top);
}

function set(middles: number[], row: readonly number[], values: readonly number[]): void {
  row.forEach((node, i) => (middles[node] = values[i] ?? 0));
}

function weightsOf(row: readonly number[], weight: readonly number[]): number[] {
  return row.map((node) => weight[node] ?? 1);
}

/** The distance from the middle of each node to the middle of the node above it. */
function gapsOf(row: readonly number[], room: readonly number[]): number[] {
  return row.map((node, i) => (i === 0 ? 0 : ((room[node] ?? 0) + (room[row[i - 1] ?? 0] ?? 0)) / 2));
}

function median(nodes: readonly number[], middles: readonly number[]): number | undefined {
  if (nodes.length < 2) return nodes[0] === undefined ? undefined : middles[nodes[0]];
  const sorted = nodes.map((node) => middles[node] ?? 0).sort((a, b) => a - b);
  const half = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(half)] ?? 0) + (sorted[Math.ceil(half)] ?? 0)) / 2;
}

interface Block {
  sum: number;
  weight: number;
  size: number;
}

/**
 * Values as near to the wishes as can be (least squares) that grow by at least `gaps[i]` from one to the next: blocks
 * that would overlap are merged and stand at their common mean.
 */
export function settle(wishes: readonly number[], weights: readonly number[], gaps: readonly number[]): number[] {
  const offsets: number[] = [];
  gaps.forEach((gap, i) => offsets.push((offsets[i - 1] ?? 0) + gap));
  const blocks: Block[] = [];
  wishes.forEach((wish, i) => {
    const weight = weights[i] ?? 1;
    let last: Block = { sum: (wish - (offsets[i] ?? 0)) * weight, weight, size: 1 };
    for (let above = blocks.at(-1); above !== undefined && mean(above) > mean(last); above = blocks.at(-1)) {
      blocks.pop();
      last = { sum: above.sum + last.sum, weight: above.weight + last.weight, size: above.size + last.size };
    }
    blocks.push(last);
  });
  const settled: number[] = [];
  for (const block of blocks) {
    for (let i = 0; i < block.size; i++) settled.push(mean(block) + (offsets[settled.length] ?? 0));
  }
  return settled;
}

function mean(block: Block): number {
  return block.sum / block.weight;
}
