/** One box of the graph: a task with its state, or a trigger; of this job or another one. */
import { memo } from 'react';
import type { State } from '../../../../src/api/shapes.ts';
import { shapeOf } from '../../kit/state.tsx';
import type { Graph } from '../use-job.ts';
import { type LaidNode, letterWidth, nodeHeight, textLeft } from './layout.ts';

export type GraphNode = Graph['nodes'][number];

interface Props {
  readonly node: GraphNode;
  readonly place: LaidNode;
  /** The text of the second line. */
  readonly word: string;
  readonly foreign: boolean;
  /** Undefined if the task has not begun, and for boxes without a state. */
  readonly state: State | undefined;
  readonly chosen: boolean;
  /** Whether Tab leads to this box. */
  readonly current: boolean;
}

const clock = 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 5v3.2l2.2 1.3';
const elsewhere = 'M6 3.5H3.5v9h9V10M9 3.5h3.5V7M12.5 3.5 7.5 8.5';

function cut(name: string, width: number): string {
  const fits = Math.floor((width - textLeft - 8) / letterWidth);
  return name.length > fits ? `${name.slice(0, fits - 1)}…` : name;
}

export const GraphNodeBox = memo(function GraphNodeBox({ node, place, word, foreign, state, chosen, current }: Props) {
  const shape = foreign ? elsewhere : node.kind === 'trigger' ? clock : shapeOf(state ?? 'waiting');
  return (
    <g
      className="graph-node state-ink"
      transform={`translate(${place.x} ${place.y})`}
      role={node.kind === 'task' && !foreign ? 'button' : 'link'}
      tabIndex={current ? 0 : -1}
      aria-pressed={node.kind === 'task' && !foreign ? chosen : undefined}
      data-node={node.id}
      data-kind={foreign ? 'foreign' : node.kind}
      data-state={state}
    >
      <title>{`${node.name}, ${word}`}</title>
      <rect
        className="graph-box"
        width={place.width}
        height={nodeHeight}
        rx={node.kind === 'trigger' ? nodeHeight / 2 : 6}
      />
      <g className="graph-shape" transform="translate(10 12)">
        <path d={shape} />
      </g>
      <text className="graph-name" x={textLeft} y={17}>
        {cut(node.name, place.width)}
      </text>
      <text className="graph-word" x={textLeft} y={32}>
        {cut(word, place.width)}
      </text>
    </g>
  );
});
