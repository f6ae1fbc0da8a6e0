/** One execution as commands read and print it: its facts, the drawing of its tree, and how to repair its incidents. */
import { isId } from '../../../kernel/id.ts';
import { formatAge } from '../../print/format-age.ts';
import { type Output, showTime } from '../../print/output.ts';
import type { Style } from '../../print/paint.ts';
import { oneLine, truncate } from '../../print/width.ts';
import { UsageError } from '../../session/exit.ts';
import type { Server } from '../../session/server.ts';
import { drawTree } from './execution-tree.ts';

export const executionArgument = ['<id>', 'the UUID of an execution, as `millrace flow executions` lists it'] as const;

export async function fetchExecution(server: Server, id: string, rev?: number) {
  return server.tenant('GET /api/executions/{id}', { params: { id }, query: { rev } });
}

export type Execution = Awaited<ReturnType<typeof fetchExecution>>;
type Status = Execution['status'];

export function checkExecutionId(text: string): string {
  if (isId(text)) return text;
  throw new UsageError(
    `${JSON.stringify(text)} is not the UUID of an execution; \`millrace flow executions\` lists them`,
  );
}

export const isOver = ({ status }: { readonly status: Status }): boolean =>
  status === 'done' || status === 'failed' || status === 'cancelled';

const statusStyles: Readonly<Record<Status, Style>> = {
  running: 'cyan',
  waiting: 'yellow',
  paused: 'yellow',
  incident: 'red',
  done: 'green',
  failed: 'red',
  cancelled: 'yellow',
};

export function statusCell(status: Status): { readonly text: Status; readonly style: Style } {
  return { text: status, style: statusStyles[status] };
}

interface DrawLimits {
  readonly nowMs: number;
  readonly width?: number | undefined;
  readonly maxRows?: number | undefined;
}

const maxShownValue = 2_000;

/** The lines of `millrace flow show`. */
export function renderExecution(execution: Execution, out: Output, limits: DrawLimits): string[] {
  const { paint } = out;
  const { nowMs } = limits;
  return [
    headingOf(execution, out, nowMs),
    ...factsOf(execution).map(([name, value]) => `${paint('dim', `${name}: `)}${oneLine(value)}`),
    '',
    ...drawTree(execution.tree, execution.nodes, { ...limits, width: limits.width ?? out.width, paint }),
    ...repairLines(execution, out, nowMs),
  ];
}

function headingOf(execution: Execution, { paint }: Output, nowMs: number): string {
  const { flow, version, id, status, updated_at: updatedAt, ended_at: endedAt } = execution;
  const { text, style } = statusCell(status);
  const age = endedAt === null ? `${formatAge(updatedAt, nowMs)} since its last commit` : `at ${showTime(endedAt)}`;
  return `${paint('bold', `${flow} v${version}`)} ${id} ${paint(style, text)}, ${age}`;
}

function factsOf(execution: Execution): (readonly [name: string, value: string])[] {
  const { id, rev, key, parent, labels, input, fields, error, early, own_document: isOwn, owner, status } = execution;
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return [
    ...(key === null ? [] : [['key', key] as const]),
    ...(pairs.length === 0 ? [] : [['labels', pairs.join(' ')] as const]),
    ...(parent === null ? [] : [['called by', `${parent.execution}, node ${parent.node}`] as const]),
    ...(rev === 0 ? [['not begun', `no conductor has taken it yet; millrace why ${id}`] as const] : []),
    ['input', shorten(input)],
    ['fields', shorten(fields)],
    ...(status === 'done' ? [['result', shorten(execution.result)] as const] : []),
    ...(error === null ? [] : [['error', `${error.code}: ${error.message}`] as const]),
    ...(isOwn ? [['document', 'its own: steps were swapped; --document prints it'] as const] : []),
    ...(early.total === 0 ? [] : [['early signals', `${early.total}: ${early.names.join(', ')}`] as const]),
    ...(isOver(execution) || owner?.alive !== false
      ? []
      : [['conductor', 'gone; the next one takes the execution over'] as const]),
  ];
}

function shorten(value: unknown): string {
  return truncate(JSON.stringify(value ?? null), maxShownValue);
}

/** Each incident with the commands that repair it. */
export function repairLines({ id, incidents, nodes }: Execution, { paint }: Output, nowMs: number): string[] {
  const only = incidents.length === 1;
  return incidents.flatMap(({ node, path, code, message, since }) => {
    const { verb, name } = nodes.find((each) => each.id === node) ?? { verb: 'step', name: null };
    const target = only ? id : `${id} ${node}`;
    const what = [verb, name].filter((word) => word !== null).join(' ');
    return [
      '',
      `${paint('red', `incident in ${oneLine(what)}`)} at ${oneLine(path)}, for ${formatAge(since, nowMs)}`,
      `  ${oneLine(code)}: ${oneLine(message)}`,
      `  try again:        millrace flow retry ${target}`,
      `  go on without it: millrace flow skip ${target} --result null`,
    ];
  });
}
