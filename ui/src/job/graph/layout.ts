/**
 * The layout of a job's graph: nodes and edges in layers from left to right. An edge that skips layers gets a lane through
 * them, by virtual nodes, so that it crosses no box.
 *
 * It is a pure function; 500 tasks take some milliseconds.
 */
import { layersOf, type Link, neighbours, withoutCircles } from './layers.ts';
import { orderLayers } from './order.ts';
import { placeNodes } from './place.ts';

export interface LaidNode {
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly layer: number;
}

interface LaidEdge {
  readonly from: string;
  readonly to: string;
  /** The data of an SVG path. */
  readonly path: string;
}

export interface Layout<E> {
  readonly nodes: ReadonlyMap<string, LaidNode>;
  readonly edges: readonly (LaidEdge & { readonly edge: E })[];
  readonly width: number;
  readonly height: number;
}

interface GivenNode {
  readonly id: string;
  readonly name: string;
}

interface GivenEdge {
  readonly from: string;
  readonly to: string;
}

export const nodeHeight = 40;
/** The left padding of a box's text, and the largest average width of a letter. */
export const textLeft = 33;
export const letterWidth = 6.7;
const mostWidth = 208;
const nodeRoom = 56;
const laneRoom = 16;
const betweenLayers = 46;
/** With more bends than this, the longest edges are drawn as one curve, because lanes for all would cost too much. */
const mostBends = 6_000;

/** Wide enough for its name, within reason; longer ones are cut. */
function widthOf(name: string): number {
  return Math.round(Math.min(mostWidth, Math.max(104, textLeft + 12 + name.length * letterWidth)));
}

export function layOut<E extends GivenEdge>(nodes: readonly GivenNode[], edges: readonly E[]): Layout<E> {
  const numbers = new Map(nodes.map(({ id }, number) => [id, number]));
  const known = edges.flatMap((edge) => {
    const [from, to] = [numbers.get(edge.from), numbers.get(edge.to)];
    return from === undefined || to === undefined || from === to ? [] : [{ edge, link: { from, to } }];
  });
  const links = withoutCircles(
    nodes.length,
    known.map(({ link }) => link),
  );
  const bent = bend(nodes.length, layersOf(nodes.length, links), links);
  const rows = orderLayers(bent);
  const widths = nodes.map(({ name }) => widthOf(name));
  const columns = columnsOf(rows, widths);
  const middles = placeNodes({
    rows,
    children: neighbours(bent.count, bent.links, 'from'),
    parents: neighbours(bent.count, bent.links, 'to'),
    room: Array.from({ length: bent.count }, (_, node) => (node < nodes.length ? nodeRoom : laneRoom)),
    weight: Array.from({ length: bent.count }, (_, node) => (node < nodes.length ? 1 : 2)),
  });
  const column = (node: number): Column => columns[bent.layers[node] ?? 0] ?? { x: 0, width: 0 };
  const laid = nodes.map(({ id }, node): LaidNode => {
    const y = (middles[node] ?? 0) - nodeHeight / 2;
    return { id, x: column(node).x, y, width: widths[node] ?? 0, layer: bent.layers[node] ?? 0 };
  });
  const point = (node: number): Stop => {
    const [own, y] = [column(node), middles[node] ?? 0];
    return { left: own.x, right: own.x + (widths[node] ?? own.width), y };
  };
  const last = columns.at(-1);
  return {
    nodes: new Map(laid.map((node) => [node.id, node])),
    edges: known.map(({ edge, link }, i) => {
      const way = bent.ways[i] ?? [];
      const turned = way[0] !== link.from;
      return { from: edge.from, to: edge.to, edge, path: pathOf(way.map(point), turned) };
    }),
    width: last === undefined ? 0 : last.x + last.width,
    height: rows.flat().reduce((most, node) => Math.max(most, (middles[node] ?? 0) + nodeRoom / 2), 0),
  };
}

/** Every link as a path from layer to layer, with a bend in each layer that it would have skipped. */
function bend(count: number, layers: readonly number[], links: readonly Link[]) {
  const all = [...layers];
  const steps: Link[] = [];
  const ways = links.map(({ from, to }) => {
    const way = [from];
    const span = (layers[to] ?? 0) - (layers[from] ?? 0);
    if (span > 1 && all.length - count + span > mostBends) return [from, to];
    for (let layer = (layers[from] ?? 0) + 1; layer < (layers[to] ?? 0); layer++) way.push(all.push(layer) - 1);
    way.push(to);
    way.slice(1).forEach((node, i) => steps.push({ from: way[i] ?? from, to: node }));
    return way;
  });
  return { count: all.length, layers: all, links: steps, ways };
}

interface Column {
  readonly x: number;
  readonly width: number;
}

function columnsOf(rows: readonly number[][], widths: readonly number[]): Column[] {
  const columns: Column[] = [];
  let x = 0;
  for (const row of rows) {
    const width = row.reduce((most, node) => Math.max(most, widths[node] ?? 0), 0);
    columns.push({ x, width });
    x += width + betweenLayers;
  }
  return columns;
}

interface Stop {
  readonly left: number;
  readonly right: number;
  readonly y: number;
}

/** Leaves and arrives horizontally. A reversed edge is drawn from its true beginning, which is at the right. */
function pathOf(stops: readonly Stop[], turned: boolean): string {
  const way = turned ? stops.toReversed() : stops;
  const [first] = way;
  if (first === undefined) return '';
  let path = `M${turned ? first.left : first.right} ${first.y}`;
  way.slice(1).forEach((stop, i) => {
    const before = way[i] ?? first;
    const [from, enter, leave] = turned ? [before.left, stop.right, stop.left] : [before.right, stop.left, stop.right];
    const half = (from + enter) / 2;
    path += `C${half} ${before.y} ${half} ${stop.y} ${enter} ${stop.y}`;
    if (i < way.length - 2) path += `H${leave}`;
  });
  return path;
}
