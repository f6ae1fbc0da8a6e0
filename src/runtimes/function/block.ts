/** Work of kind `function`: a JavaScript function that the worker has. */
import { z } from 'zod';
import { text } from '../../documents/fields.ts';
import { longestName, printableFault } from '../../documents/name.ts';
import { defineKind } from '../work.ts';

export interface FunctionWork {
  readonly kind: 'function';
  readonly name: string;
  readonly input: unknown;
}

export const functionKind = defineKind({
  kind: 'function',
  isLocal: true,
  hasVariables: true,
  summary: 'Run a function.',
  schema: z
    .strictObject({
      name: text(printableFault, { minLength: 1, maxLength: longestName }).describe(
        'The name under which the worker registered the function.',
      ),
      input: z.unknown().optional().describe('Any JSON value; passed to the function as its input.'),
    })
    .meta({ title: 'Function', description: 'Run a JavaScript function that a worker has registered.' }),
  templates: ['input'],
  block: z.object({ kind: z.literal('function'), name: z.string(), input: z.unknown() }),
  build: ({ name, input }) => ({ kind: 'function', name, input: input ?? null }),
  expand: ({ kind, name, input }, texts): FunctionWork => ({ kind, name, input: texts.value(input) }),
  view: ({ name, input }) => ({ command: [name], input }),
  remedy: (flags) => `start one: millrace worker --functions FILE.js${flags}`,
});
