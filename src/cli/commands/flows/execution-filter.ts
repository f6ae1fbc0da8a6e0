/** The flags that choose executions, of lists and of operations on many. */
import type { Command } from 'commander';
import { z } from 'zod';
import { executionStatuses } from '../../../api/executions/shapes.ts';
import { UsageError } from '../../session/exit.ts';
import { integer, requireText, wordsOf } from '../../session/flags.ts';
import type { ExecutionFilter } from '../../session/pages.ts';
import { checkInstant } from '../../session/references.ts';

export const filterFlags = {
  flow: z.string().optional(),
  flowVersion: z.int().optional(),
  status: z.string().optional(),
  label: z.string().optional(),
  key: z.string().optional(),
  after: z.string().optional(),
  before: z.string().optional(),
} as const;

type FilterFlags = z.output<z.ZodObject<typeof filterFlags>>;

export const maxVersion = 2 ** 31 - 1;

export function withFilter(command: Command): Command {
  return command
    .option('--flow <name>', 'only executions of this flow', requireText)
    .option('--flow-version <n>', 'only those of this version', integer(1, maxVersion))
    .option('--status <statuses>', `comma-separated: ${executionStatuses.join(', ')}`, wordsOf(executionStatuses))
    .option('--label <name=value>', 'only those with this label', requireText)
    .option('--key <key>', 'only the one with this key', requireText)
    .option('--after <instant>', 'only those started after it')
    .option('--before <instant>', 'only those started before it');
}

export function readFilter({ flow, flowVersion, status, label, key, after, before }: FilterFlags): ExecutionFilter {
  return {
    flow,
    version: flowVersion,
    status,
    label: label === undefined ? undefined : readLabel(label),
    key,
    created_after: after === undefined ? undefined : checkInstant(after),
    created_before: before === undefined ? undefined : checkInstant(before),
  };
}

export function hasFilter(filter: ExecutionFilter): boolean {
  return Object.values(filter).some((value) => value !== undefined);
}

function readLabel(text: string): string {
  const at = text.indexOf('=');
  if (at > 0) return `${text.slice(0, at)}:${text.slice(at + 1)}`;
  throw new UsageError(`--label ${JSON.stringify(text)} must be NAME=VALUE`);
}
