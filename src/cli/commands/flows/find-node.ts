/** Finds the live step that a command is about: by its node, or by the name, tag or place of its step. */
import { MillraceError } from '../../../errors.ts';
import { UsageError } from '../../session/exit.ts';
import type { Execution } from './execution.ts';

type Searched = Pick<Execution, 'id' | 'incidents' | 'nodes' | 'status'>;

export const nodeArgument = [
  '[node]',
  'a live step: its node as `flow show` prints it, or its name, tag or place; may be left out if there is exactly one incident',
] as const;

/** Without a reference, the only incident. Of several steps with the name, one with an incident is preferred. */
export function findNode(execution: Searched, reference: string | undefined): string {
  const { nodes } = execution;
  if (reference === undefined) return onlyIncident(execution);
  if (nodes.some(({ id }) => id === reference)) return reference;
  const named = nodes.filter(({ name, tag, path }) => [name, tag, path].includes(reference));
  const failed = named.filter(({ phase }) => phase === 'incident');
  const found = failed.length > 0 ? failed : named;
  const [first, ...others] = found;
  if (first === undefined)
    throw new MillraceError('not_found', `no live step is called ${JSON.stringify(reference)}; ${listOf(nodes)}`);
  if (others.length === 0) return first.id;
  throw new UsageError(`several live steps are called ${JSON.stringify(reference)}; give a node: ${idsOf(found)}`);
}

function onlyIncident({ id, incidents, nodes, status }: Searched): string {
  const [first, ...others] = incidents;
  if (first !== undefined && others.length === 0) return first.node;
  if (first !== undefined)
    throw new UsageError(
      `${incidents.length} steps have an incident; give one: ${incidents.map(({ node }) => node).join(', ')}`,
    );
  throw new MillraceError(
    'not_found',
    `the execution ${id} is ${status} and has no incident; give a step; ${listOf(nodes)}`,
  );
}

function listOf(nodes: Searched['nodes']): string {
  return nodes.length === 0
    ? 'no step is alive'
    : `live steps: ${idsOf(nodes.filter(({ waits }) => waits?.kind !== 'steps'))}`;
}

const maxListed = 20;

function idsOf(nodes: Searched['nodes']): string {
  const shown = nodes
    .slice(0, maxListed)
    .map(({ id, verb, name }) => `${id} (${[verb, name].filter(Boolean).join(' ')})`);
  return [...shown, ...(nodes.length > maxListed ? ['…'] : [])].join(', ');
}
