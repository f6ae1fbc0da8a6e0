/**
 * Assigns each node of a graph to a layer, counted from the left, so that every edge leads to a layer further right. Nodes are
 * numbers here. Edges that close a cycle are reversed for this, so that a graph with cycles can be drawn.
 */
export interface Link {
  readonly from: number;
  readonly to: number;
}

/** For each node, its neighbours along incoming or outgoing links. */
export function neighbours(count: number, links: readonly Link[], side: 'from' | 'to'): number[][] {
  const lists: number[][] = Array.from({ length: count }, () => []);
  const other = side === 'from' ? 'to' : 'from';
  for (const link of links) lists[link[side]]?.push(link[other]);
  return lists;
}

/** The same links, with back edges of a depth-first walk reversed. */
export function withoutCircles(count: number, links: readonly Link[]): Link[] {
  const children = neighbours(count, links, 'from');
  const onPath = new Uint8Array(count);
  const backward = new Set<string>();
  const seen = new Uint8Array(count);
  // an explicit stack, because a chain of thousands would overflow the call stack
  const walk = (root: number): void => {
    const path = [{ node: root, next: 0 }];
    seen[root] = onPath[root] = 1;
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const child = children[top.node]?.[top.next++];
      if (child === undefined) {
        onPath[top.node] = 0;
        path.pop();
      } else if (onPath[child] === 1) {
        backward.add(`${top.node} ${child}`);
      } else if (seen[child] === 0) {
        seen[child] = onPath[child] = 1;
        path.push({ node: child, next: 0 });
      }
    }
  };
  for (let node = 0; node < count; node++) if (seen[node] === 0) walk(node);
  return links.map(({ from, to }) => (backward.has(`${from} ${to}`) ? { from: to, to: from } : { from, to }));
}

/** Layers by the longest path to each node. A node without predecessors is placed right before its first successor. */
export function layersOf(count: number, links: readonly Link[]): number[] {
  const children = neighbours(count, links, 'from');
  const parents = neighbours(count, links, 'to');
  const layers = Array.from({ length: count }, () => 0);
  const missing = parents.map((list) => list.length);
  const ready = missing.flatMap((n, node) => (n === 0 ? [node] : []));
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    const next = (layers[node] ?? 0) + 1;
    for (const child of children[node] ?? []) {
      layers[child] = Math.max(layers[child] ?? 0, next);
      missing[child] = (missing[child] ?? 0) - 1;
      if (missing[child] === 0) ready.push(child);
    }
  }
  for (let node = 0; node < count; node++) {
    const below = children[node] ?? [];
    if (parents[node]?.length === 0 && below.length > 0) {
      layers[node] = Math.min(...below.map((child) => layers[child] ?? 0)) - 1;
    }
  }
  return layers;
}
