/** The edges of the graph, distinguished by line and end: success, failure, done, and edges of triggers. */
import { memo } from 'react';
import type { Graph } from '../use-job.ts';
import type { Layout } from './layout.ts';

type Edge = Graph['edges'][number];

export const GraphEdges = memo(function GraphEdges({ edges }: { readonly edges: Layout<Edge>['edges'] }) {
  return (
    <g aria-hidden="true">
      {edges.map(({ edge, path }) => (
        <path
          key={`${edge.from} ${edge.to} ${edge.kind}`}
          className="graph-edge"
          data-kind={edge.kind}
          d={path}
          markerEnd={`url(#graph-end-${edge.kind === 'failure' || edge.kind === 'done' ? edge.kind : 'success'})`}
        />
      ))}
    </g>
  );
});

/** Ends of edges: an arrow, a cross for failure, a dot for done. */
export function EdgeEnds() {
  const box = { markerUnits: 'userSpaceOnUse', markerWidth: 12, markerHeight: 12, refX: 11, refY: 6 } as const;
  return (
    <defs>
      <marker id="graph-end-success" {...box} orient="auto">
        <path className="graph-end" d="M5 2.5 10.5 6 5 9.5" />
      </marker>
      <marker id="graph-end-failure" {...box} orient="auto">
        <path className="graph-end" data-kind="failure" d="m3 2.5 7 7M10 2.5l-7 7" />
      </marker>
      <marker id="graph-end-done" {...box} orient="auto">
        <circle className="graph-end" data-kind="done" cx="7.5" cy="6" r="2.7" />
      </marker>
    </defs>
  );
}

const kinds = [
  { kind: 'success', words: 'after success' },
  { kind: 'failure', words: 'after failure' },
  { kind: 'done', words: 'after either' },
] as const;

/** Shows only the kinds that the graph has; a graph with success edges alone needs no legend. */
export function EdgeLegend({ edges }: { readonly edges: readonly Edge[] }) {
  const present = new Set(edges.map(({ kind }) => kind));
  const shown = kinds.filter(({ kind }) => present.has(kind));
  if (!present.has('failure') && !present.has('done')) return null;
  return (
    <ul className="graph-legend" aria-label="Kinds of edges">
      {shown.map(({ kind, words }) => (
        <li key={kind}>
          <svg viewBox="0 0 34 12" aria-hidden="true">
            <path className="graph-edge" data-kind={kind} d="M1 6H33" markerEnd={`url(#graph-end-${kind})`} />
          </svg>
          {words}
        </li>
      ))}
    </ul>
  );
}
