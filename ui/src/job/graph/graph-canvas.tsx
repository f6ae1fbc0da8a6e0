/**
 * The drawing of a graph: boxes and edges that can be dragged, zoomed, navigated with the arrow keys and opened. For a screen
 * reader it is a group of buttons and links, each with its name and state.
 */
import { type KeyboardEvent, type MouseEvent, useMemo, useRef, useState } from 'react';
import type { State } from '../../../../src/api/shapes.ts';
import { wordOf } from '../../kit/state.tsx';
import type { Graph } from '../use-job.ts';
import { EdgeEnds, GraphEdges, EdgeLegend } from './graph-edges.tsx';
import { type GraphNode, GraphNodeBox } from './graph-node.tsx';
import { layOut, nodeHeight } from './layout.ts';
import { steer } from './steer.ts';
import { useView, type ViewControl } from './use-view.ts';

interface Props {
  readonly job: string;
  readonly graph: Graph;
  /** States of the tasks that have begun; undefined while they are not known. */
  readonly states: ReadonlyMap<string, State> | undefined;
  readonly chosen: string | undefined;
  readonly open: (node: GraphNode) => void;
}

export function GraphCanvas({ job, graph, states, chosen, open }: Props) {
  const others = useMemo(() => new Map(graph.jobs.map(({ id, project, name }) => [id, `${project}/${name}`])), [graph]);
  const layout = useMemo(() => layOut(withRoom(graph, others), graph.edges), [graph, others]);
  const frame = useRef<SVGSVGElement>(null);
  const drawn = useRef<SVGGElement>(null);
  const kept = useMemo(() => {
    const place = chosen === undefined ? undefined : layout.nodes.get(chosen);
    return place === undefined ? undefined : { ...place, height: nodeHeight };
  }, [layout, chosen]);
  const view = useView(frame, drawn, layout, kept);
  const [last, setLast] = useState<string>();
  const current = [last, chosen, graph.nodes[0]?.id].find((id) => id !== undefined && layout.nodes.has(id));

  const focus = (id: string | undefined): void => {
    const place = id === undefined ? undefined : layout.nodes.get(id);
    if (place === undefined) return;
    setLast(place.id);
    view.reveal({ ...place, height: nodeHeight });
    drawn.current?.querySelector<SVGGElement>(`[data-node="${place.id}"]`)?.focus({ preventScroll: true });
  };
  const openAt = (event: MouseEvent | KeyboardEvent): void => {
    const node = graph.nodes.find(({ id }) => id === nodeAt(event.target));
    if (node === undefined) return;
    setLast(node.id);
    open(node);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' || event.key === ' ') openAt(event);
    else if (event.key.startsWith('Arrow')) focus(steer(layout.nodes, nodeAt(event.target) ?? '', event.key));
    else if (!zoomByKey(view, event.key)) return;
    event.preventDefault();
  };

  return (
    <div className="graph">
      <svg ref={frame} className="graph-frame" style={{ maxHeight: layout.height + roomAround }} {...view.drag}>
        <EdgeEnds />
        {/* biome-ignore format: one handler a line */}
        <g
          ref={drawn}
          role="group"
          aria-label="Tasks and triggers; the arrow keys lead from one to the next"
          onClick={openAt}
          onKeyDown={onKeyDown}
          onFocus={(event) => setLast(nodeAt(event.target))}
        >
          <GraphEdges edges={layout.edges} />
          {graph.nodes.map((node) => {
            const place = layout.nodes.get(node.id);
            if (place === undefined) return null;
            return (
              <GraphNodeBox
                key={node.id}
                node={node}
                place={place}
                word={secondLine(node, others.get(node.job_id), states)}
                foreign={node.job_id !== job}
                state={states?.get(node.id)}
                chosen={node.id === chosen}
                current={node.id === current}
              />
            );
          })}
        </g>
      </svg>
      <EdgeLegend edges={graph.edges} />
      <Zoom view={view} />
    </div>
  );
}

/** A box is as wide as the longer of its two lines. */
function withRoom({ nodes }: Graph, others: ReadonlyMap<string, string>): readonly { id: string; name: string }[] {
  return nodes.map(({ id, name, job_id }) => {
    const job = others.get(job_id) ?? '';
    return { id, name: job.length > name.length ? job : name };
  });
}

function secondLine(node: GraphNode, otherJob: string | undefined, states: Props['states']): string {
  if (otherJob !== undefined) return otherJob;
  if (node.kind === 'trigger' || states === undefined) return node.kind;
  const state = states.get(node.id);
  return state === undefined ? 'not begun' : wordOf(state);
}

function nodeAt(target: EventTarget): string | undefined {
  return target instanceof Element ? target.closest<SVGElement>('[data-node]')?.dataset['node'] : undefined;
}

const zoomStep = 1.3;
/** Room for the buttons above a low graph and the legend below it. */
const roomAround = 120;

function zoomByKey(view: ViewControl, key: string): boolean {
  if (key === '+' || key === '=') view.zoomBy(zoomStep);
  else if (key === '-') view.zoomBy(1 / zoomStep);
  else if (key === '0') view.fit();
  else return false;
  return true;
}

function Zoom({ view }: { readonly view: ViewControl }) {
  return (
    <div className="graph-zoom">
      <button type="button" className="button" aria-label="Zoom in" onClick={() => view.zoomBy(zoomStep)}>
        +
      </button>
      <button type="button" className="button" aria-label="Zoom out" onClick={() => view.zoomBy(1 / zoomStep)}>
        −
      </button>
      <button type="button" className="button" onClick={view.fit}>
        Fit
      </button>
    </div>
  );
}
